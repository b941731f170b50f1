/* compile_search.c: how schedules were found: smg explain --phase search. What was looked at to cut the graph into
 * kernels; then for each kernel what was generated, lowered, measured, what fell away and why, what was left alone. */
#include "compile/compile.h"

/* What was tried and taken beside the line, and what was not tried. */
static void print_moves(const smg_plan *plan, smg_text *text) {
    const smg_moves *m = &plan->moves;
    if (!m->searched) {
        smg_text_add(text, "  not tried: operations together that are no neighbours in the line\n");
        return;
    }
    smg_text_addf(text,
                  "  no neighbours in the line, but a tensor in common: %d pairs of kernels, %d have one between that "
                  "needs the first and that the second needs, %d got a price as one\n",
                  m->pairs, m->between, m->priced);
    smg_text_addf(text, "  computed anew by readers, or a kernel in place of that: %d values got a price\n", m->values);
    for (int i = 0; i < m->taken.count; i++)
        smg_text_addf(text, "  taken: %s: %.2f us, apart %.2f us\n", m->taken.items[i].what,
                      m->taken.items[i].seconds * 1e6, m->taken.items[i].apart * 1e6);
    if (m->left + m->uncut > 0)
        smg_text_addf(
            text, "  not tried: %d more, and %d segments of the line that they make: %d segments have got a price\n",
            m->left, m->uncut, m->segments);
    smg_text_add(text, "  not tried: kernels together that have no tensor in common; three that do not pay in twos; a "
                       "value that some read and others compute anew\n");
    if (plan->steps.count > SMG_PLAN_FARTHEST)
        smg_text_addf(text, "  not tried: kernels together that have more than %d between them\n", SMG_PLAN_FARTHEST);
}

const smg_cut *smg_compile_find_parts(const smg_compilation *c, const smg_split *s, int64_t elements) {
    const smg_cut like = {.at = s->at, .kind = SMG_CUT_PARTS, .chunk = elements};
    return smg_tuning_find_cut(&c->tuning, &like);
}

bool smg_compile_knows_split(const smg_compilation *c, const smg_split *s) {
    bool known = smg_compile_find_parts(c, s, 0) != NULL;
    for (int i = 0; i < s->priced.count; i++)
        known = known || smg_compile_find_parts(c, s, s->priced.items[i].elements) != NULL;
    return known;
}

static void print_chunk(const smg_compilation *c, const smg_split *s, smg_chunk chunk, smg_text *text) {
    const smg_cut *cut = smg_compile_find_parts(c, s, chunk.elements);
    if (chunk.elements > 0)
        smg_text_addf(text, "    in parts of %lld: %.2f us", (long long)chunk.elements, chunk.least * 1e6);
    else
        smg_text_addf(text, "    whole: %.2f us", chunk.least * 1e6);
    if (chunk.least < chunk.seconds)
        smg_text_addf(text, ", and %.2f us with kernels of their own for what sums them up", chunk.seconds * 1e6);
    if (chunk.elements == s->chunk) smg_text_add(text, s->fixed != NULL ? ", taken as measured" : ", taken");
    if (cut != NULL)
        smg_text_addf(text, "; measured: a run takes %.2f us so, %.2f us otherwise", cut->seconds * 1e6,
                      cut->apart * 1e6);
    smg_text_add(text, "\n");
}

void smg_compile_print_split(const smg_compilation *c, const smg_split *s, smg_text *text) {
    smg_text_addf(text, "  %s", s->what);
    if (s->places > 1) smg_text_addf(text, ", %d times", s->places);
    smg_text_add(text, ":\n");
    print_chunk(c, s, (smg_chunk){0, s->whole, s->whole}, text);
    for (int i = 0; i < s->priced.count; i++) print_chunk(c, s, s->priced.items[i], text);
}

static void print_breadth(const smg_compilation *c, smg_text *text) {
    const smg_breadth *b = &c->plan->breadth;
    smg_text_addf(text,
                  "cuts: %d operations in a line, %d segments of it looked at, %d of them possible as one kernel\n",
                  b->nodes, b->segments, b->possible);
    if (b->hopeless_ends > 0)
        smg_text_addf(text, "  from %d operations on no longer segment was looked at: there is no common space\n",
                      b->hopeless_ends);
    if (b->product_ends > 0)
        smg_text_addf(text, "  from %d operations on none with more products was tried than a kernel may have\n",
                      b->product_ends);
    if (b->long_ends > 0)
        smg_text_addf(text, "  from %d operations on none with more operations was tried than a kernel may have\n",
                      b->long_ends);
    if (b->inside > 0)
        smg_text_addf(text,
                      "  at %d places, inside of chains of maps or of sums in parts, no segment of several operations "
                      "begins or ends\n",
                      b->inside);
    print_moves(c->plan, text);
    for (int i = 0; i < c->plan->splits.count; i++) smg_compile_print_split(c, &c->plan->splits.items[i], text);
}

/* The first step that was found by the same search. */
static const smg_pstep *first_of(const smg_compilation *c, const smg_pstep *step) {
    const smg_pstep *first = c->plan->steps.items;
    while (first->search != step->search) first++;
    return first;
}

/* By price, those without one last, as they came. */
static bool comes_first(const smg_tried *a, const smg_tried *b) {
    if ((a->refused == NULL) != (b->refused == NULL)) return a->refused == NULL;
    return a->refused == NULL && a->price.seconds < b->price.seconds;
}

static smg_status sort(const smg_search *s, smg_arena *arena, int **out_order) {
    int *order = SMG_ARENA_ARRAY(arena, int, (size_t)s->tried.count + 1);
    if (order == NULL) return SMG_MEMORY;
    for (int i = 0; i < s->tried.count; i++) {
        int at = i;
        while (at > 0 && comes_first(&s->tried.items[i], &s->tried.items[order[at - 1]])) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    *out_order = order;
    return SMG_OK;
}

static void print_counts(const smg_pstep *step, smg_text *text) {
    const smg_search *s = step->search;
    int fit = 0;
    for (int i = 0; i < s->tried.count; i++) fit += s->tried.items[i].refused == NULL;
    smg_text_addf(text, "%s: %d schedules generated, %d lowered, %d of them fit\n", step->name, s->generated,
                  s->tried.count, fit);
    for (int i = 0; i < s->crowded.count; i++)
        smg_text_addf(text, "  %d shapes of blocks not filled: %s\n", s->crowded.items[i].count,
                      s->crowded.items[i].why);
    if (s->repeated > 0)
        smg_text_addf(text, "  %d of what was lowered came again: they were generated twice\n", s->repeated);
    if (s->roomless > 0)
        smg_text_addf(text, "  %d not lowered: a count over the space gives them no room\n", s->roomless);
    if (s->untried > 0)
        smg_text_addf(text, "  %d not lowered: the same count has them behind those that were\n", s->untried);
}

/* One line: axes and lanes, without what none of the axes is for. */
static void print_schedule(const char *lines, smg_text *text) {
    for (bool first = true; *lines != '\0'; first = false) {
        size_t length = strcspn(lines, "\n"), indent = strspn(lines, " ");
        smg_text_add(text, first ? "" : "; ");
        smg_text_add_n(text, lines + indent, length - indent);
        lines += length + (lines[length] == '\n');
    }
}

/* In turns, where that is known, else in passes or alone; 0: not at all. */
static double measured_seconds(const smg_tuning *tuning, const smg_pstep *step, const smg_tried *t) {
    const smg_measured *m = step->measured;
    if (m != NULL && m->schedule == t->schedule) return m->seconds;
    const smg_timing *found = smg_timing_find(tuning->timings, tuning->timing_count, step->choice.at, t->schedule);
    return found != NULL ? found->seconds : 0;
}

static void print_tried(const smg_compilation *c, const smg_pstep *step, const smg_tried *t, int rank, smg_text *text) {
    double measured = measured_seconds(&c->tuning, step, t);
    if (t->refused == NULL)
        smg_text_addf(text, "  %4d %10.2f %10.2f", rank, t->price.seconds * 1e6, t->guess * 1e6);
    else
        smg_text_addf(text, "  %4s %10s %10.2f", "-", "-", t->guess * 1e6);
    if (measured > 0)
        smg_text_addf(text, " %10.2f", measured * 1e6);
    else
        smg_text_addf(text, " %10s", "-");
    smg_text_addf(text, "  %016llx%s ", (unsigned long long)t->schedule,
                  t->schedule == step->choice.schedule ? " taken" : "");
    if (t->refused != NULL) smg_text_addf(text, " %s:", t->refused);
    smg_text_add(text, " ");
    print_schedule(t->text, text);
    smg_text_add(text, "\n");
}

smg_status smg_compile_print_search(smg_compilation *c, const smg_pstep *step, const smg_explain_options *options,
                                    smg_text *text) {
    const smg_search *s = step->search;
    smg_arena *arena = NULL;
    int *order;
    if (s == NULL) return SMG_OK; /* of the prepare list */
    if (options->kernel == NULL && step == c->plan->steps.items) print_breadth(c, text);
    if (options->kernel == NULL && step != first_of(c, step)) {
        smg_text_addf(text, "%s: as %s\n", step->name, first_of(c, step)->name);
        return SMG_OK;
    }
    SMG_TRY(smg_arena_create(c->ctx, &arena));
    smg_status status = sort(s, arena, &order);
    if (status == SMG_OK) {
        print_counts(step, text);
        smg_text_addf(text, "  %4s %10s %10s %10s  schedule\n", "rank", "price us", "guess us", "measured");
        for (int i = 0; i < s->tried.count; i++) print_tried(c, step, &s->tried.items[order[i]], i, text);
    }
    smg_arena_destroy(arena);
    return status;
}
