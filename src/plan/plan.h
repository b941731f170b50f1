/* plan: which nodes share a kernel, and in which order kernels run.
 *
 * Takes:    a rewritten graph, a target, options.
 * Gives:    smg_plan: prepare steps and run steps with their kernels, the reasons for every cut, prices on
 *           both sides.
 * Promises: deterministic for the same input; every value a step reads is written by an earlier one; a
 *           value read outside its step is stored once; work on constants alone is a prepare step.
 * Does not: write GLSL, compile or run.
 */
#ifndef SMG_PLAN_H
#define SMG_PLAN_H

#include "graph/graph.h"
#include "kernel/kernel.h"
#include "space/space.h"
#include "target/target.h"

/* Of the search: what is tried, and what prices say. Raise it when the same sources plan otherwise than before, because
 * of something outside of them (a table of measurements): plans that were kept are made anew. Changes of the
 * sources need nothing, the key of kept plans has their fingerprint. */
#define SMG_PLAN_REVISION 1

/* Of all schedules of a segment those that come out best by a count over its space (plan_rank.c). */
#define SMG_PLAN_LOWERED 16

/* Segments of a run list that get a price for what is no cut of one line of its operations (plan_moves.c). */
#define SMG_PLAN_MOVES 256
#define SMG_PLAN_FARTHEST 64 /* kernels between two that may become one so */

typedef enum smg_objective {
    SMG_OBJECTIVE_TIME,
    SMG_OBJECTIVE_DISPATCHES,
    SMG_OBJECTIVE_MEMORY /* the fewest bytes of values between kernels at a time; of such plans the fastest */
} smg_objective;

/* A schedule for some nodes: the same in every plan of the graph. */
typedef struct smg_choice {
    uint64_t nodes, schedule;
    uint64_t at; /* of the nodes at the sizes that prices are for: the same in other graphs with such nodes */
    smg_node_id first, last; /* of the nodes where it was taken */
    int64_t registers;       /* that its program needs; INT64_MAX: it is not rejected for them */
} smg_choice;

/* What the driver's compiler takes for the program of a schedule. */
typedef struct smg_taken {
    uint64_t schedule; /* as in smg_choice */
    int64_t registers; /* of a lane */
    int64_t spills;    /* more, in memory; -1: it does not say */
} smg_taken;

/* What the driver's compiler made of schedules that were planned before. */
typedef struct smg_driver_facts {
    /* Not taken where another one is to be had: nothing good came of them. Segments with more nodes, and after two all
     * that have the first of them, get none that needs as many registers. */
    const smg_choice *rejected;
    int rejected_count;
    const smg_taken *taken; /* prices are by these in place of a guess */
    int taken_count;
} smg_driver_facts;
/* Of a schedule, as in smg_choice. Taken: registers are 0 where nobody knows. */
bool smg_driver_rejects(const smg_driver_facts *facts, uint64_t schedule);
smg_taken smg_driver_taken(const smg_driver_facts *facts, uint64_t schedule);

/* What was measured of some nodes at some sizes. */
typedef struct smg_measured {
    uint64_t at, schedule;    /* as in smg_choice: the fastest schedule */
    double seconds, cheapest; /* what it took, and what the one of the lowest price took */
} smg_measured;

/* Where a schedule ran while it was measured. */
typedef enum smg_timing_kind {
    SMG_TIMING_ALONE,  /* in the unfused plan, of whose steps it is one */
    SMG_TIMING_PASSES, /* between the neighbours that it has in the plan */
    SMG_TIMING_BEATEN  /* there, and in turns with the one of the lowest price, which was no slower */
} smg_timing_kind;

/* What one schedule of some nodes at some sizes took. No plan depends on it. */
typedef struct smg_timing {
    uint64_t at, schedule; /* as in smg_choice */
    double seconds;
    smg_timing_kind kind;
} smg_timing;

typedef enum smg_cut_kind {
    SMG_CUT_APART,    /* they are no kernel */
    SMG_CUT_TOGETHER, /* they are one */
    SMG_CUT_PARTS     /* their sums are in parts of so many elements, or whole */
} smg_cut_kind;

/* Some nodes at some sizes: what a run of the whole took with them so and otherwise. */
typedef struct smg_cut {
    uint64_t at; /* as in smg_choice, or smg_split */
    smg_cut_kind kind;
    double seconds, apart; /* as one kernel, or in parts of so many; otherwise */
    int64_t chunk;         /* of PARTS: elements of a part; 0: no parts */
} smg_cut;

/* Constants that lie one behind the other, each `stride` elements on. */
typedef struct smg_stack {
    const smg_node_id *each;
    int count;
    int64_t stride;
} smg_stack;

typedef struct smg_plan_options {
    smg_objective objective;
    int rank;     /* the schedule of this rank by price for every kernel; 0: the best */
    int lowered;  /* schedules of a segment that are lowered and priced; 0: SMG_PLAN_LOWERED, and rank */
    bool unfused; /* every non-view node its own kernel (the yardstick) */
    /* Of the run list: a kernel has so many nodes and products at most (0: as many as the search goes through by
     * itself; never more than PLAN_MAX_SEGMENT and PLAN_MAX_PRODUCTS), and if it has several nodes, takes at most this
     * share of the time less that they take as kernels of their own (0: any). */
    int max_nodes, max_products;
    double min_gain;
    /* Bytes of values between kernels that live at a time, at most, at the sizes that prices are for; 0: any. NO_FIT
     * where no plan keeps to it, with the least that one does; or_least: that one is taken instead. */
    int64_t max_live;
    bool or_least;
    /* In [0, 1]: how much of what may be saved of them is, from the plan that is taken otherwise to the least. */
    double memory_pressure;
    int parts;               /* for tests: sums are in so many parts wherever they can be; 0: where that is cheaper;
                                negative: nowhere */
    int moves;               /* segments that get a price for what is no cut of the line, at most; 0: SMG_PLAN_MOVES,
                                negative: the line is cut, and nothing else is tried */
    bool run_only;           /* the prepare list is another plan's of the same graph and target: leave it out */
    const smg_stack *stacks; /* kernels read no others; NULL: as they like */
    int stack_count;
    bool keep_passes;       /* keep the program after each pass of lowering as text */
    const int64_t *nominal; /* symbol values that prices are computed for; NULL: smg_plan_nominal */
    smg_driver_facts driver;
    /* Nodes that were measured on the target, by ascending `at`, get the schedule that was fastest, where it is one of
     * theirs. Prices decide what is cut. Not where a rank is asked for, or the yardstick. */
    const smg_measured *measured;
    int measured_count;
    /* For the report: by ascending `at` and schedule. */
    const smg_timing *timings;
    int timing_count;
    /* Nodes that are one kernel or not, or whose sums have so many parts or none, because that was measured, in any
     * order; for SMG_OBJECTIVE_TIME. Numbers of parts that the planner does not find by itself mean nothing. */
    const smg_cut *cuts;
    int cut_count;
    int rivals;  /* so many further schedules of each step of the run list, at most, are lowered to be measured */
    bool report; /* what steps save, and what neighbours would be as one kernel: smg_pstep.apart, smg_plan.groupings */
    bool search; /* how schedules of the run list were found: smg_pstep.search */
    bool splits; /* of smg_plan.splits also numbers of parts that by price are one kernel with what sums the parts up */
} smg_plan_options;
/* Of timings in that order; NULL: it was not measured. */
const smg_timing *smg_timing_find(const smg_timing *timings, int count, uint64_t at, uint64_t schedule);

/* What a kernel has of a core: workgroups at a time, and lanes and registers of each, with the driver's. */
typedef struct smg_resident {
    double workgroups, lanes, registers;
} smg_resident;

typedef struct smg_price {
    double seconds;
    double idle;   /* of these, what cores that have no workgroup of the last round could do meanwhile */
    double heaped; /* seconds more where another kernel leaves its workgroups no room */
    smg_resident resident;
    double bytes;  /* global traffic at the nominal sizes */
    double stored; /* bytes of results, each once */
    double flops;
    double workgroups;
    int64_t shared_bytes, registers;
    int64_t taken;      /* of a lane by the driver's compiler, where that is known; else 0 */
    int64_t spilled;    /* more, in memory, where `taken` is known; -1: nobody says */
    int64_t operations; /* code of a lane after unrolling */
} smg_price;

/* The program of a step after one pass of lowering. */
typedef struct smg_lowered {
    int pass; /* of smg_lower_pass_get */
    const char *text;
} smg_lowered;

/* The same nodes by another schedule. */
typedef struct smg_rival {
    smg_kernel *kernel;
    smg_price price;
    smg_choice choice;
} smg_rival;

/* The nodes of a step and of the next one, as one kernel. */
typedef struct smg_joint {
    uint64_t at; /* as in smg_choice; 0: they cannot be one, or nobody asked */
    double seconds, apart;
} smg_joint;

/* What was looked at to cut the run list. */
typedef struct smg_breadth {
    int nodes;                                  /* in a line: segments are neighbours in it */
    int segments, possible;                     /* looked at; those that are one kernel */
    int long_ends, product_ends, hopeless_ends; /* starts whose segments end because they have as many nodes as may be,
                                                   as many products, or no common space any more */
    int inside; /* places inside of chains of maps, or of sums in parts, where no segment of several nodes begins or
                   ends */
} smg_breadth;

/* What was taken beside the cuts of the line. */
typedef struct smg_move {
    const char *what;
    double seconds, apart; /* of the kernels that it makes, and of those before */
} smg_move;
/* What was tried beside them. Where equal layers follow each other, each counts. */
typedef struct smg_moves {
    bool searched;
    int pairs;       /* of kernels that are no neighbours, or not with all that they are, and that a tensor ties */
    int between;     /* of these, with a kernel between that hangs on the one and that the other hangs on */
    int priced;      /* of these, with a price as one kernel; the others are dearer by what stays apart alone */
    int values;      /* with a price as computed anew by their readers, or as a kernel in place of that */
    int segments;    /* that got a price */
    int left, uncut; /* moves, and segments of the order that they make, that have none: there were as many as may */
    SMG_ARRAY(smg_move) taken;
} smg_moves;

/* What some sums take in parts of so many elements, by price. */
typedef struct smg_chunk {
    int64_t elements;
    double seconds; /* with kernels of their own for what sums the parts up, as it is measured */
    double least;   /* as prices choose: the reader may sum them up */
} smg_chunk;
/* Kernels of the list that was cut first, whose sums are in parts, or could be. Where the same structure comes again,
 * its first place. */
typedef struct smg_split {
    uint64_t at;          /* of the nodes at the sizes that prices are for: the same in other graphs with such nodes */
    const char *what;     /* "sums of 2 kernels from y on" */
    int places;           /* how often it comes */
    double whole;         /* seconds by price, without parts */
    int64_t chunk;        /* elements of a part; 0: there are none */
    const smg_cut *fixed; /* decided, because it was measured; NULL: prices did */
    SMG_ARRAY(smg_chunk) priced;
} smg_split;

/* A schedule that was lowered. */
typedef struct smg_tried {
    uint64_t schedule;   /* as in smg_choice */
    const char *text;    /* axes and lanes, lines */
    double guess;        /* seconds, by what decided that it is lowered */
    const char *refused; /* why it is none; NULL: it fits, and has a price */
    smg_price price;
} smg_tried;
typedef struct smg_fallen {
    const char *why;
    int count;
} smg_fallen;
/* How the schedule of a step was found. */
typedef struct smg_search {
    int generated;                 /* schedules */
    SMG_ARRAY(smg_fallen) crowded; /* shapes of blocks whose schedules have no room and were not generated */
    int repeated;                  /* lowered ones that are among `tried` already: they were generated twice */
    int roomless;                  /* generated ones that have none by their guess */
    int untried;                   /* and those whose guess is behind enough others that fit */
    SMG_ARRAY(smg_tried) tried;    /* the others, as they came */
} smg_search;

/* The operations of a step as kernels of their own, by price. */
typedef struct smg_apart {
    double seconds, bytes; /* of all of them */
    double measured;       /* seconds, where each was; else 0 */
    int64_t live;          /* at most, as smg_pstep.live */
} smg_apart;

/* Steps that follow each other, as one kernel. Where the same structure comes again, its first place. */
typedef struct smg_grouping {
    int first, last;     /* of them, both included */
    int places, nodes;   /* how often it comes; its operations */
    uint64_t at;         /* as in smg_choice */
    const char *refused; /* why they cannot be one kernel; NULL: they can, at this price */
    double seconds, bytes;
    int64_t live;              /* as smg_pstep.live */
    double apart, apart_bytes; /* of the steps */
    int64_t apart_live;
} smg_grouping;

typedef struct smg_pstep {
    const char *name;
    smg_kernel *kernel;
    int node_count;
    const smg_node_id *nodes;
    const smg_space *space; /* of these, or of the first of the equal bodies that they are */
    smg_price price;
    smg_choice choice;
    const char *because; /* text lines of decisions: cuts, roles, updates, rejected neighbours */
    smg_joint joint;
    double beside;                /* seconds of its price that pass beside the step before */
    const smg_measured *measured; /* that decided; NULL: the price did */
    /* Of the run list, where the options ask for a report: */
    int64_t live; /* bytes of values between kernels while it runs, its results among them; not those of outputs */
    smg_apart apart;
    int joinable; /* as smg_plan.joinable: among its operations, and between these and the next on either side */
    double rate;  /* flop/s that its arithmetic is done at, at most */
    /* Where the options ask for it: */
    const smg_search *search;       /* the same one for steps of equal structure */
    SMG_ARRAY(smg_rival) rivals;    /* the next by price, where asked for; of the first steps of a structure */
    SMG_ARRAY(smg_lowered) lowered; /* where the options ask for it: each pass that changed the program */
} smg_pstep;

typedef struct smg_plan {
    const smg_graph *planned; /* that nodes of `prepare` are of */
    const smg_graph *graph;   /* that nodes of `steps` are of: the same, or one in which sums are in parts */
    /* Where it is another: per node the node of `planned` with the same value, -1: none has it. Else NULL. */
    const smg_node_id *origin;
    smg_arena *arena;
    SMG_ARRAY(smg_pstep) prepare; /* once, after the constants are there: reads constants only, no symbolic size */
    SMG_ARRAY(smg_pstep) steps;   /* every run */
    /* Where masks of the graph have ends: the share of a row's keys that they may be expected to keep, else 0. Below 1
     * both run lists have a price at that share, in seconds, and the cheaper one was taken; at 1 that without ends. */
    double kept, with_ends, without_ends;
    double cost; /* of the run list, by what the objective counts */
    smg_breadth breadth;
    smg_moves moves;
    SMG_ARRAY(smg_split) splits; /* of the run list: in parts, or whole with a price in parts */
    int64_t live;                /* bytes of values between kernels of the run list that live at a time, at most */
    /* Where the options ask for a report: */
    SMG_ARRAY(smg_grouping) groupings;
    int unpriced; /* runs of steps that have no price, because the search ends before them */
    int joinable; /* neighbours in the order that some kernel of the search has together */
} smg_plan;

/* The graph with products by terms (plan_linear.c): one whose factor is shifted and scaled by statistics of itself
 * becomes a product of what is not, and terms of constants. Only products of at most `few` rows at these values of
 * symbols. All but nodes and outputs are those of `g`; storage it has none. *out_count: such products; 0: the graph is
 * of no use. *out_like, per node: the one of `g` that it is stored like; -1: a term, or a part of one, which 16 bits
 * may not hold. */
smg_status smg_plan_linear(const smg_graph *g, int64_t few, const int64_t *nominal, smg_arena *arena,
                           smg_graph *out_graph, const smg_node_id **out_like, int *out_count);
smg_status smg_plan_make(const smg_graph *g, const smg_target *target, const smg_plan_options *options,
                         smg_arena *arena, smg_plan **out_plan);
/* What the price of a step's kernel is where the driver's compiler makes that of it; symbols: the sizes that it was
 * planned for. */
double smg_plan_seconds_taking(const smg_pstep *step, const smg_target *target, const int64_t *symbols,
                               const smg_taken *taken);
/* Sizes that prices assume when the user gives none: min(max, 128) for bounded symbols, else 1; more where an
 * extent of the graph would be below 1. */
void smg_plan_nominal(const smg_graph *g, int64_t *out_values);
/* A kernel that was measured. */
typedef struct smg_timed {
    const smg_kernel *kernel;
    smg_price needs;        /* its price: shared memory and registers */
    const int64_t *symbols; /* the sizes of the runs */
    uint64_t at;            /* as in smg_choice: of its schedules one is compared with another */
    double seconds;
} smg_timed;
/* How near prices come to what was measured. */
typedef struct smg_nearness {
    double
        error; /* geometric mean of price to time, or of time to price, whichever is above 1; each `at` counts once */
    double agreed; /* share of two schedules of one `at` that prices order as times do, where these differ by 5 % */
    int pairs;     /* of such schedules */
} smg_nearness;
typedef struct smg_fit {
    int kernels, schedules; /* distinct `at`; all */
    smg_nearness before, after;
    double left_out;     /* error of kernels by rates that were fitted to the others */
    const char *refused; /* why the rates are left as they are; NULL: they are fitted */
} smg_fit;
/* Rates of *io_target, from those that it has, so that prices come near these times; `nominal` is the same target with
 * rates that were not fitted, and bounds them. Deterministic. The refusal is in the arena. */
smg_status smg_plan_fit_rates(const smg_timed *timed, int count, const smg_target *nominal, smg_arena *arena,
                              smg_target *io_target, smg_fit *out_fit);
/* The node of plan->planned that has the value of a node of plan->graph; -1: none has. */
smg_node_id smg_plan_origin(const smg_plan *plan, smg_node_id id);
void smg_plan_print(const smg_plan *plan, smg_text *text);
/* What nodes of a graph do as one kernel, whatever their sizes: "1 reduce_max a; 2 maps 1 3 a; 3 sum 2" are three
 * parts, each with the parts and the tensors that it reads. Maps that read each other are one. Nodes come after
 * those that they read. */
smg_status smg_plan_pattern(const smg_graph *g, const smg_node_id *nodes, int count, smg_text *text);

#endif
