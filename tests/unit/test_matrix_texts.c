/* Kernels by matrices as text, without hardware: what the verifier takes, and refuses with one place changed; both modes of
 * the interpreter give the product of the rounded factors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lower/lower.h"
#include "support/check_plan.h"
#include "support/kernel_bench.h"

/* ---- texts --------------------------------------------------------------------------------------------- */

/* y = exp(a b) c by matrices of 4 x 4 x 4, whose left factors lie as their sums do: the first product's sums become the
 * left factor of the second. */
static const char chain[] = "kernel chain\n"
                            "lanes 16 subgroup 8 numbered\n"
                            "axis i = 16 tile 8 grid\n"
                            "axis j = 8 tile 8\n"
                            "axis k = 8 tile 4\n"
                            "axis n = 4 tile 4\n"
                            "grid i\n"
                            "matrix 4 4 4 f16 registers column*2 lanes column*2:2 row*4\n"
                            "left registers column*2 lanes column*2:2 row*4\n"
                            "layout 0 = [i, j] registers j*2 j*2:4 lanes j*2:2 i*4 subgroups i*2:4\n"
                            "layout 1 = [i, j, k] registers j*2 j*2:4 k*4 lanes j*2:2 i*4 subgroups i*2:4\n"
                            "layout 2 = [i, n] registers n*2 lanes n*2:2 i*4 subgroups i*2:4\n"
                            "layout 3 = [i, n, j] registers n*2 j*8 lanes n*2:2 i*4 subgroups i*2:4\n"
                            "buffer a f16 [128] value 0\n"
                            "buffer b f16 [64] value 1\n"
                            "buffer c f16 [32] value 2\n"
                            "buffer y f32 [64] value 3 written\n"
                            "tile s float register [i, j] layout 0 fragments\n"
                            "tile p f16 register [i, j] layout 0 left fragments\n"
                            "tile o float register [i, n] layout 2 fragments\n"
                            "tile sa f16 shared [i, k] pad 8\n"
                            "tile sb f16 shared [k, j] pad 8\n"
                            "tile sc f16 shared [j, n] pad 8\n"
                            "access 0 = a at [0] i*[8] k*[1]\n"
                            "access 1 = b at [0] k*[8] j*[1]\n"
                            "access 2 = c at [0] j*[4] n*[1]\n"
                            "access 3 = y at [0] i*[4] n*[1]\n"
                            "code\n"
                            "  set s = 0\n"
                            "  set o = 0\n"
                            "  stage sc walk [j, n] = load(2)\n"
                            "  loop k\n"
                            "    stage sa walk [i, k] = load(0)\n"
                            "    stage sb walk [k, j] = load(1)\n"
                            "    barrier\n"
                            "    mma s += sa * sb over [k] layout 1\n"
                            "    barrier\n"
                            "  end\n"
                            "  set p = exp(s)\n"
                            "  mma o += p * sc over [j] layout 3\n"
                            "  store 3 over [i, n] layout 2 = o\n";

/* The text with one place changed, and the sentence that refuses it; "": it stays right. */
typedef struct change {
    const char *from, *to, *sentence;
} change;
static const change changes[] = {
    {"matrix", "matrix", ""},
    {"matrix 4 4 4 f16", "matrix 4 4 4 bf16", ""},
    {"matrix 4 4 4", "matrix 4 4 3", "matrices of 4 x 4 x 3: sides must be powers of two"},
    {"matrix 4 4 4 f16", "matrix 4 4 4 f32", "matrices of f32: factors are f16 or bf16"},
    {"f16 registers column*2 lanes", "f16 registers column*4 lanes",
     "the layout of a matrix's sums: two bits of a layout set the same"},
    {"left registers column*2 lanes", "left registers column*4 lanes", "two bits of a layout set the same"},
    {"matrix 4 4 4", "matrix 4 4 8", "the layout of a matrix's left factor is not one of 4 x 8"},
    {"lanes 16 subgroup 8", "lanes 16 subgroup 4", "subgroups of"},
    {"matrix 4 4 4 f16 registers column*2 lanes column*2:2 row*4\n", "", "is of fragments, and there is no matrix"},
    {"registers j*2 j*2:4 lanes j*2:2 i*4 subgroups i*2:4\nlayout 1",
     "registers j*2:4 j*2 lanes j*2:2 i*4 subgroups i*2:4\nlayout 1", "is not one of whole matrices of 4 x 4"},
    {"tile s float register [i, j] layout 0 fragments", "tile s float register [i, j] layout 0", ""},
    {"tile p f16 register [i, j] layout 0 left fragments", "tile p float register [i, j] layout 0",
     "the left factor 'p' must be a shared tile"},
    {"left registers column*2 lanes column*2:2 row*4", "left registers row*2 lanes column*4 row*2:2",
     "the left factor 'p' does not lie as whole matrices"},
    {"left registers column*2 lanes column*2:2 row*4\n", "", "the left factor 'p' does not lie as whole matrices"},
    {"axis k = 8 tile 4", "axis k = 8 tile 2", "no multiples of the matrix's"},
    {"store 3 over", "store 3 by 4 n matrices over", ""},
    {"store 3 over", "store 3 by 8 n matrices over", "whole matrices at once of what does not lie so"},
    {"store 3 over", "store 3 by 4 i matrices over", "whole matrices at once of what does not lie so"},
    {"set p = exp(s)", "set p by 8 j matrices = exp(s)", "whole matrices at once of what does not lie so"},
    {"store 3 over", "store 3 by 4 n matrices else by 2 n over", "access 3 has no aligned groups of 2 along axis 'n'"},
    {"store 3 over", "store 3 by 4 n matrices else by 2 i over", "no lane owns runs of 2 along axis 'i'"},
    {"store 3 over", "store 3 by 4 n matrices else by 8 n over", "8 neighbours at once, not 4"},
};

/* y = a b, of slices that are on their way for four steps: fetched, put, taken, multiplied. */
#define SLICES(ahead, last)                                                                                            \
    "    fetch na walk [i, k] along k ahead " ahead last " = load(0)\n"                                                \
    "    fetch nb walk [k, j] along k ahead " ahead last " = load(1)\n"
static const char ring[] =
    "kernel ring\n"
    "lanes 16 subgroup 8 numbered\n"
    "axis i = 16 tile 8 grid\n"
    "axis j = 8 tile 8\n"
    "axis k = 24 tile 4\n"
    "grid i\n"
    "matrix 4 4 4 f16 registers column*2 lanes column*2:2 row*4\n"
    "left registers column*2 lanes column*2:2 row*4\n"
    "right registers row*2 lanes row*2:2 column*4\n"
    "layout 0 = [i, j] registers j*2 j*2:4 lanes j*2:2 i*4 subgroups i*2:4\n"
    "layout 1 = [i, j, k] registers j*2 j*2:4 k*4 lanes j*2:2 i*4 subgroups i*2:4\n"
    "layout 2 = [i, k] registers k*2 lanes k*2:2 i*4 subgroups i*2:4\n"
    "layout 3 = [k, j] registers k*2 j*2:4 lanes k*2:2 j*4 subgroups *2\n"
    "buffer a f16 [384] value 0\n"
    "buffer b f16 [192] value 1\n"
    "buffer y f32 [128] value 2 written\n"
    "tile s float register [i, j] layout 0 fragments\n"
    "tile fa f16 register [i, k] layout 2 left fragments slots 2 along k\n"
    "tile fb f16 register [k, j] layout 3 right fragments slots 2 along k\n"
    "tile sa f16 shared [i, k] pad 8 slots 2 along k\n"
    "tile sb f16 shared [k, j] pad 8 slots 2 along k\n"
    "tile na f16 staging [i, k] slots 2 along k\n"
    "tile nb f16 staging [k, j] slots 2 along k\n"
    "access 0 = a at [0] i*[24] k*[1]\n"
    "access 1 = b at [0] k*[8] j*[1]\n"
    "access 2 = y at [0] i*[8] j*[1]\n"
    "code\n"
    "  set s = 0\n" SLICES("0", "")
        SLICES("1", "") "  put sa walk [i, k] ahead 0 = na\n"
                        "  put sb walk [k, j] ahead 0 = nb\n" SLICES(
                            "2", "") "  barrier\n"
                                     "  take fa ahead 0 = sa\n"
                                     "  take fb ahead 0 = sb\n"
                                     "  loop k rolled by 2\n"
                                     "    put sa walk [i, k] ahead 1 = na\n"
                                     "    put sb walk [k, j] ahead 1 = nb\n" SLICES(
                                         "3", " or last") "    barrier # of a step\n"
                                                          "    take fa ahead 1 = sa\n"
                                                          "    take fb ahead 1 = sb\n"
                                                          "    mma s += fa * fb over [k] layout 1\n"
                                                          "  end\n"
                                                          "  store 2 over [i, j] layout 0 = s\n";

static const change ring_changes[] = {
    {"rolled by 2", "rolled by 2", ""},
    {"rolled by 2", "rolled",
     "instruction 20 reads one of the 2 slots that tile 'fa' has in registers, by the step of the loop over 'k' of "
     "instruction 12, which is not written out by so many"},
    {"rolled by 2", "rolled by 3", "by the step of the loop over 'k' of instruction 12, which is not written out by"},
    {"rolled by 2", "rolled by 4", "has 6 steps, and is written out by 4"},
    {"  take fa ahead 0 = sa\n", "", "slot 0 of tile 'fa' is read before instruction 17 writes it"},
    {"    take fa ahead 1 = sa\n", "", "slot 1 of tile 'fa' is read before instruction 10 writes it"},
    {"    take fa ahead 1", "    take fa ahead 0", "shared tile 'sa' is written without a workgroup barrier after"},
    {"ahead 3 or last = load(0)", "ahead 5 or last = load(0)",
     "'na' is put for step 3, and instruction 15 has fetched"},
    {"along k ahead 2 = load(1)", "along k ahead 1 = load(1)", "'nb' is put for step"},
    {"    barrier # of a step\n", "", "shared tile 'sa' is read without a workgroup barrier after instruction 13"},
    {"take fb ahead 1 = sb", "take fb ahead 1 = sa", "'fb' and 'sa' differ in type or axes"},
    {"layout 3 right fragments", "layout 3 left fragments", "the right factor 'fb' must be a shared tile"},
    {"right registers row*2 lanes row*2:2 column*4\n", "", "'fb' does not lie as whole matrices"},
    {"registers k*2 j*2:4 lanes", "registers j*2:4 k*2 lanes", "'fb' does not lie as whole matrices"},
};

/* Lanes have eight neighbours along k of both factors. */
#define BY_RUNS                                                                                                        \
    "lanes 16 subgroup 8 numbered\n"                                                                                   \
    "axis i = 16 tile 8 grid\n"                                                                                        \
    "axis j = 8 tile 8\n"                                                                                              \
    "axis k = 32 tile 16\n"                                                                                            \
    "grid i\n"                                                                                                         \
    "matrix 4 4 4 f16 registers column*2 lanes column*2:2 row*4\n"                                                     \
    "left registers column*2 lanes column*2:2 row*4\n"                                                                 \
    "right registers row*2 lanes row*2:2 column*4\n"                                                                   \
    "layout 0 = [i, j] registers j*2 j*2:4 lanes j*2:2 i*4 subgroups i*2:4\n"                                          \
    "layout 1 = [i, j, k] registers j*2 j*2:4 k*16 lanes j*2:2 i*4 subgroups i*2:4\n"                                  \
    "layout 2 = [i, k] registers k*8 lanes k*2:8 i*4 subgroups i*2:4\n"                                                \
    "layout 3 = [j, k] registers k*8 j*2:4 lanes k*2:8 j*4 subgroups *2\n"

/* y = a b, both read from memory by the lanes that multiply them, eight along k at a time. */
static const char stream[] = "kernel stream\n" BY_RUNS "buffer a f16 [512] value 0\n"
                             "buffer b f16 [256] value 1\n"
                             "buffer y f32 [128] value 2 written\n"
                             "tile s float register [i, j] layout 0 fragments\n"
                             "tile fa f16 register [i, k] layout 2 left fragments\n"
                             "tile fb f16 register [j, k] layout 3 right fragments\n"
                             "access 0 = a at [0] i*[32] k*[1]\n"
                             "access 1 = b at [0] j*[32] k*[1]\n"
                             "access 2 = y at [0] i*[8] j*[1]\n"
                             "code\n"
                             "  set s = 0\n"
                             "  loop k\n"
                             "    set fa by 8 k = load(0)\n"
                             "    set fb by 8 k = load(1)\n"
                             "    mma s += fa * fb over [k] layout 1\n"
                             "  end\n"
                             "  store 2 over [i, j] layout 0 = s\n";

static const change stream_changes[] = {
    {"by 8 k = load(1)", "= load(1)", ""},
    {"registers k*8 j*2:4 lanes k*2:8", "registers k*2 j*2:4 k*4:4 lanes k*2:2", "no lane owns runs of 8"},
    {"registers k*8 j*2:4", "registers k*2:2 j*2:4 k*2 k*2:4", "'fa' does not lie as whole matrices"},
    {"k*8 lanes k*2:8 i*4 subgroups i*2:4", "k*8 lanes k*2:8 i*4 subgroups *2", "spans 4 of the 8 elements"},
    {"by 8 k = load(1)", "by 8 j = load(1)", "no lane owns runs of 8 along axis 'j'"},
    {"buffer b f16", "buffer b f32", "has no aligned groups of 8"},
    {"access 1 = b at [0] j*[32]", "access 1 = b at [4] j*[28]", "has no aligned groups of 8"},
};

/* y = a b: left factors lie in shared memory in the order in which lanes have right ones from memory. */
static const char beside[] =
    "kernel beside\n" BY_RUNS "buffer a f16 [512] value 0\n"
    "buffer b f16 [256] value 1\n"
    "buffer y f32 [128] value 2 written\n" BENCH_RUNS_TILES "access 0 = a at [0] i*[32] k*[1]\n"
    "access 1 = b at [0] j*[32] k*[1]\n"
    "access 2 = y at [0] i*[8] j*[1]\n" BENCH_RUNS_CODE;

static const change beside_changes[] = {
    {"pad 8 in runs", "pad 8", "'fa' does not lie as whole matrices"},
    {"take fa = sa", "take fa by 8 k = sa", "'fa' does not lie as whole matrices"},
    {"mma s += fa * fb", "mma s += sa * fb", "the left factor 'sa' lies in runs, where PUT moves elements to and TAKE"},
    {"put sa walk [i, k] = na", "stage sa walk [i, k] = load(0)", "the result 'sa' lies in runs, where PUT"},
    {"registers k*8 lanes k*2:8 i*4 subgroups i*2:4", "registers k*2 k*4:4 lanes k*2:2 i*4 subgroups i*2:4",
     "'fa' does not lie as whole matrices"},
    {"axis k = 32 tile 16", "axis k = 32 tile 8", "of a multiple of its runs along their last axis"},
    {"tile na f16 staging [i, k]", "tile na f16 staging [i, k] in runs", "only shared ones of a matrix's type do"},
    {"right registers row*2 lanes row*2:2 column*4\n", "", "where lanes have both factors by runs"},
};

/* y = a b, of which two subgroups share out k; each makes the sums of half of the columns whole. */
static const char shares[] = "kernel shares\n"
                             "lanes 16 subgroup 8 numbered\n"
                             "axis i = 16 tile 4 grid\n"
                             "axis j = 8 tile 8\n"
                             "axis k = 64 tile 32\n"
                             "grid i\n"
                             "matrix 4 4 4 f16 registers column*2 lanes column*2:2 row*4\n"
                             "left registers column*2 lanes column*2:2 row*4\n"
                             "right registers row*2 lanes row*2:2 column*4\n"
                             "layout 0 = [i, j] registers j*2 j*2:4 lanes j*2:2 i*4 subgroups *2\n"
                             "layout 1 = [i, j, k] registers j*2 j*2:4 k*16 lanes j*2:2 i*4 subgroups k*2:16\n"
                             "layout 2 = [i, k] registers k*8 lanes k*2:8 i*4 subgroups k*2:16\n"
                             "layout 3 = [j, k] registers k*8 j*2:4 lanes k*2:8 j*4 subgroups k*2:16\n"
                             "layout 4 = [i, j] registers j*2 lanes j*2:2 i*4 subgroups j*2:4\n"
                             "buffer a f16 [1024] value 0\n"
                             "buffer b f16 [512] value 1\n"
                             "buffer y f32 [128] value 2 written\n"
                             "tile s float register [i, j] layout 0 fragments\n"
                             "tile fa f16 register [i, k] layout 2 left fragments\n"
                             "tile fb f16 register [j, k] layout 3 right fragments\n"
                             "tile x float exchange [] words 64\n"
                             "tile own float register [i, j] layout 4 fragments\n"
                             "access 0 = a at [0] i*[64] k*[1]\n"
                             "access 1 = b at [0] j*[64] k*[1]\n"
                             "access 2 = y at [0] i*[8] j*[1]\n"
                             "code\n"
                             "  set s = 0\n"
                             "  loop k\n"
                             "    set fa by 8 k = load(0)\n"
                             "    set fb by 8 k = load(1)\n"
                             "    mma s += fa * fb over [k] layout 1\n"
                             "  end\n"
                             "  leave x = s over [k] layout 1 registers 0 to 3\n"
                             "  barrier\n"
                             "  gather own = add of x shares of s over [k] layout 1 registers 0 to 1\n"
                             "  store 2 over [i, j] layout 4 = own\n";

static const change share_changes[] = {
    {"layout 4 fragments", "layout 4", ""},
    {"registers j*2 lanes j*2:2 i*4 subgroups j*2:4", "registers j*2:4 lanes j*2:2 i*4 subgroups j*2",
     "register 0 of 'own' is no share of 's'"},
    {"of s over [k] layout 1 registers 0 to 1", "of s over [k] layout 1 registers 0 to 3",
     "'own' takes shares of what 's' has not left so"},
    {"of s over [k] layout 1 registers 0 to 1", "of s over [k] layout 1 registers 0 to 0",
     "'own' takes shares of what 's' has not left so"},
    {"layout 1 registers 0 to 3\n  barrier", "layout 1 registers 0 to 1\n  barrier",
     "'own' takes shares of what 's' has not left so"},
};

/* The chain where nobody knows which lane has which sum: `q` and `r` are left matrix by matrix, `s` and `o` take that. */
static const char opaque[] = "kernel opaque\n"
                             "lanes 16 subgroup 8 numbered\n"
                             "axis i = 16 tile 8 grid\n"
                             "axis j = 8 tile 8\n"
                             "axis k = 8 tile 4\n"
                             "axis n = 4 tile 4\n"
                             "grid i\n"
                             "matrix 4 4 4 f16 opaque registers column*2 lanes column*2:2 row*4\n"
                             "layout 0 = [i, j] registers j*2 j*2:4 lanes j*2:2 i*4 subgroups i*2:4\n"
                             "layout 1 = [i, j, k] registers j*2 j*2:4 k*4 lanes j*2:2 i*4 subgroups i*2:4\n"
                             "layout 2 = [i, n] registers n*2 lanes n*2:2 i*4 subgroups i*2:4\n"
                             "layout 3 = [i, n, j] registers n*2 j*8 lanes n*2:2 i*4 subgroups i*2:4\n"
                             "buffer a f16 [128] value 0\n"
                             "buffer b f16 [64] value 1\n"
                             "buffer c f16 [32] value 2\n"
                             "buffer y f32 [64] value 3 written\n"
                             "tile q float register [i, j] layout 0 fragments\n"
                             "tile s float register [i, j] layout 0\n"
                             "tile r float register [i, n] layout 2 fragments\n"
                             "tile o float register [i, n] layout 2\n"
                             "tile x float exchange [] words 32\n"
                             "tile sa f16 shared [i, k] pad 8\n"
                             "tile sb f16 shared [k, j] pad 8\n"
                             "tile sc f16 shared [j, n] pad 8\n"
                             "tile p float register [i, j] layout 0\n"
                             "tile sp f16 shared [i, j] pad 8\n"
                             "access 0 = a at [0] i*[8] k*[1]\n"
                             "access 1 = b at [0] k*[8] j*[1]\n"
                             "access 2 = c at [0] j*[4] n*[1]\n"
                             "access 3 = y at [0] i*[4] n*[1]\n"
                             "code\n"
                             "  set q = 0\n"
                             "  stage sc walk [j, n] = load(2)\n"
                             "  loop k\n"
                             "    stage sa walk [i, k] = load(0)\n"
                             "    stage sb walk [k, j] = load(1)\n"
                             "    barrier\n"
                             "    mma q += sa * sb over [k] layout 1\n"
                             "    barrier\n"
                             "  end\n"
                             "  leave x matrices = q registers 0 to 1\n"
                             "  barrier subgroup # between\n"
                             "  gather s matrices = x of q registers 0 to 1\n"
                             "  barrier subgroup # behind\n"
                             "  leave x matrices = q registers 2 to 3\n"
                             "  barrier subgroup\n"
                             "  gather s matrices = x of q registers 2 to 3\n"
                             "  set p = exp(s)\n"
                             "  spill sp = p\n"
                             "  set r = 0\n"
                             "  set o = 0\n"
                             "  barrier subgroup\n"
                             "  mma r += sp * sc over [j] layout 3\n"
                             "  leave x matrices = r registers 0 to 1\n"
                             "  barrier subgroup\n"
                             "  gather o matrices += x of r registers 0 to 1\n"
                             "  store 3 over [i, n] layout 2 = o\n";

static const change opaque_changes[] = {
    {"opaque registers", "opaque registers", ""},
    {"set p = exp(s)", "set p = exp(q)",
     "kernel 'opaque', instruction 16: it takes elements of 'q', which instruction 6 sums up in opaque matrices"},
    {"spill sp = p", "spill sp = q", "instruction 17: it takes elements of 'q', which instruction 6 sums up"},
    {"layout 2 = o\n", "layout 2 = r\n", "instruction 25: it takes elements of 'r', which instruction 21 sums up"},
    {"set q = 0", "set q = load(0)", "instruction 0: it takes elements of 'q', which instruction 6 sums up"},
    {"set q = 0", "set q = 1.5", ""},
    {"store 3 over", "store 3 by 4 n matrices over", "whole matrices at once of what does not lie so"},
    {"leave x matrices = q registers 0 to 1", "leave x = q over [k] layout 1 registers 0 to 1",
     "instruction 9: it takes elements of 'q', which instruction 6 sums up"},
    {"leave x matrices = q", "leave x matrices = s", "'s' is no tile of whole opaque matrices, and is left as such"},
    {"q registers 0 to 1", "q registers 0 to 2", "registers 0 to 2 of the 4 of 'q' are no whole matrices"},
    {"words 32", "words 16", "or do not fit the 16 words of 'x'"},
    {"x of q registers 2 to 3", "x of q registers 0 to 1",
     "'s' takes registers 0 to 1 of 'q', which instruction 13 has not left"},
    {"gather s matrices = x of q registers 2 to 3", "barrier", "tile 's' is read before it is written"},
    {"gather s matrices = x of q registers 2", "gather p matrices = x of q registers 2",
     "register 2 of 'p' is gathered, and of those before it only 0"},
    {"gather o matrices += x", "gather s matrices += x", "'s' and 'r' differ in type, axes or layout"},
    {"  set o = 0\n", "", "sums are added to 'o', which nothing has written"},
    {"barrier subgroup # between", "set o = 0",
     "shared tile 'x' is read without a subgroup barrier after instruction 9"},
    {"barrier subgroup # behind", "set o = 0", "shared tile 'x' is written without a subgroup barrier after"},
};

static void check_changes(const char *whole, const change *all, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bench b;
        char *text = bench_changed(whole, all[i].from, all[i].to);
        bench_open(&b, text);
        smg_status status = smg_kernel_verify(b.ctx, b.k);
        bool right = all[i].sentence[0] == 0;
        if (right != (status == SMG_OK) || !strstr(smg_context_error(b.ctx), all[i].sentence))
            fail_msg("%s: \"%s\", wanted \"%s\"", all[i].to, smg_context_error(b.ctx), all[i].sentence);
        bench_close(&b);
        free(text);
    }
}

static void test_verdicts(void **state) {
    (void)state;
    check_changes(chain, changes, SMG_COUNT_OF(changes));
    check_changes(ring, ring_changes, SMG_COUNT_OF(ring_changes));
    check_changes(stream, stream_changes, SMG_COUNT_OF(stream_changes));
    check_changes(beside, beside_changes, SMG_COUNT_OF(beside_changes));
    check_changes(shares, share_changes, SMG_COUNT_OF(share_changes));
    check_changes(opaque, opaque_changes, SMG_COUNT_OF(opaque_changes));
}

/* Subgroups that share out a contraction have not all of a left factor in registers. */
static void test_shared_out(void **state) {
    static const char *const step[][2] = {
        {"lanes 16 subgroup 8", "lanes 32 subgroup 8"},
        {"subgroups i*2:4\n", "subgroups i*2:4 *2\n"},
        {"subgroups i*2:4\n", "subgroups i*2:4 *2\n"},
        {"subgroups i*2:4\n", "subgroups i*2:4 *2\n"},
        {"j*8 lanes n*2:2 i*4 subgroups i*2:4\n", "j*4 lanes n*2:2 i*4 subgroups i*2:4 j*2:4\n"}};
    char *text = bench_changed(chain, "", "");
    bench b;
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(step); i++) {
        char *next = bench_changed(text, step[i][0], step[i][1]);
        free(text);
        text = next;
    }
    bench_open(&b, text);
    assert_int_equal(smg_kernel_verify(b.ctx, b.k), SMG_INTERNAL);
    if (!strstr(smg_context_error(b.ctx), "the left factor 'p' does not lie as whole matrices"))
        fail_msg("%s", smg_context_error(b.ctx));
    bench_close(&b);
    free(text);
}

/* What is printed reads back, and both modes of the interpreter give the product of the rounded factors. */
static void check_chain(const char *whole) {
    bench b;
    smg_text text;
    smg_kernel *again;
    double a[128], f[64], c[32], y[2][64];
    bench_open(&b, whole);
    assert_int_equal(smg_kernel_verify(b.ctx, b.k), SMG_OK);
    smg_text_init(&text, b.ctx);
    smg_kernel_print(b.k, &text);
    assert_int_equal(smg_kernel_parse(b.arena, b.sizes, smg_text_cstr(&text), &again), SMG_OK);
    assert_int_equal(smg_kernel_verify(b.ctx, again), SMG_OK);
    for (int i = 0; i < 128; i++) a[i] = (i * 7 % 16 - 8) / 16.0;
    for (int i = 0; i < 64; i++) f[i] = (i * 5 % 16 - 8) / 16.0;
    for (int i = 0; i < 32; i++) c[i] = (i * 3 % 16 - 8) / 16.0;
    for (int by_lane = 0; by_lane < 2; by_lane++) {
        smg_karray arrays[] = {{a, 128}, {f, 64}, {c, 32}, {y[by_lane], 64}};
        smg_status status =
            (by_lane ? smg_kernel_interpret_lanes : smg_kernel_interpret)(b.ctx, again, b.symbols, arrays, false);
        if (status != SMG_OK) fail_msg("%s", smg_context_error(b.ctx));
    }
    for (int i = 0; i < 16; i++) {
        for (int n = 0; n < 4; n++) {
            double want = 0;
            for (int j = 0; j < 8; j++) {
                double sum = 0;
                for (int k = 0; k < 8; k++) sum += a[i * 8 + k] * f[k * 8 + j];
                want += smg_type_stored(SMG_TYPE_F16, exp(sum)) * c[j * 4 + n];
            }
            assert_true(fabs(y[0][i * 4 + n] - want) < 1e-12 && fabs(y[1][i * 4 + n] - want) < 1e-12);
        }
    }
    smg_text_free(&text);
    bench_close(&b);
}

static void test_chain(void **state) {
    (void)state;
    check_chain(chain);
    check_chain(opaque);
}

/* Lanes that read what they should not know, or too early, are found without the verifier, too. */
static void test_opaque_by_lane(void **state) {
    (void)state;
    static const change wrong[] = {
        {"set p = exp(s)", "set p = exp(q)", "an element of 'q' is read, and nobody knows which lane has it"},
        {"barrier subgroup # between", "set o = 0", "without a subgroup barrier between"},
        {"barrier subgroup # behind", "set o = 0", "without a subgroup barrier between"}};
    static double a[128], f[64], c[32], y[64];
    for (size_t i = 0; i < SMG_COUNT_OF(wrong); i++) {
        bench b;
        char *text = bench_changed(opaque, wrong[i].from, wrong[i].to);
        smg_karray arrays[] = {{a, 128}, {f, 64}, {c, 32}, {y, 64}};
        bench_open(&b, text);
        assert_int_equal(smg_kernel_interpret_lanes(b.ctx, b.k, b.symbols, arrays, false), SMG_INTERNAL);
        if (!strstr(smg_context_error(b.ctx), wrong[i].sentence)) fail_msg("%s", smg_context_error(b.ctx));
        bench_close(&b);
        free(text);
    }
}

/* What is printed reads back, and gives the product of 16 x depth elements and 8 columns, of which neighbours along k
 * and along columns lie so far apart. */
static void check_product(const char *whole, int depth, int along, int across) {
    bench b;
    smg_text text;
    smg_kernel *again;
    double a[1024], f[512], y[128];
    bench_open(&b, whole);
    smg_text_init(&text, b.ctx);
    smg_kernel_print(b.k, &text);
    assert_int_equal(smg_kernel_parse(b.arena, b.sizes, smg_text_cstr(&text), &again), SMG_OK);
    assert_int_equal(smg_kernel_verify(b.ctx, again), SMG_OK);
    for (int i = 0; i < 16 * depth; i++) a[i] = (i * 7 % 16 - 8) / 16.0;
    for (int i = 0; i < 8 * depth; i++) f[i] = (i * 5 % 16 - 8) / 16.0;
    for (int by_lane = 0; by_lane < 2; by_lane++) {
        smg_karray arrays[] = {{a, 16 * depth}, {f, 8 * depth}, {y, 128}};
        smg_status status =
            (by_lane ? smg_kernel_interpret_lanes : smg_kernel_interpret)(b.ctx, again, b.symbols, arrays, false);
        if (status != SMG_OK) fail_msg("%s", smg_context_error(b.ctx));
        for (int i = 0; i < 128; i++) {
            double want = 0;
            for (int k = 0; k < depth; k++) want += a[i / 8 * depth + k] * f[k * along + i % 8 * across];
            assert_true(fabs(y[i] - want) < 1e-9);
        }
    }
    smg_text_free(&text);
    bench_close(&b);
}

/* Slices that are on their way for several steps arrive where they are multiplied. */
static void test_ring(void **state) {
    (void)state;
    check_product(ring, 24, 8, 1);
}

/* So do factors whose elements along k lanes have in another order than matrices number them. */
static void test_stream(void **state) {
    (void)state;
    check_product(stream, 32, 1, 32);
}

/* So do those that shared memory has in that order. */
#define PRODUCT "    mma s += fa * fb over [k] layout 1\n"

static char *replaced(char *text, const char *from, const char *to) {
    char *made = bench_changed(text, from, to);
    free(text);
    return made;
}

/* How the stream's loop over k is written, of so many steps and products: 1 in full, -1 as a loop, 0 as the compiler
 * likes. */
static int written(int steps, int products, bool repeated) {
    char extent[64];
    smg_target target;
    bench b;
    snprintf(extent, sizeof(extent), "axis r = 3 tile 1\naxis k = %d tile 16", steps * 16);
    char *text = bench_changed(stream, "axis k = 32 tile 16", extent);
    for (int i = 1; i < products; i++) text = replaced(text, PRODUCT, PRODUCT PRODUCT);
    if (repeated) text = replaced(text, "  loop k\n", "  loop r\n  loop k\n");
    if (repeated) text = replaced(text, "  end\n", "  end\n  end\n");
    bench_open(&b, text);
    free(text);
    assert_int_equal(check_target(b.ctx, "h200", &target), SMG_OK);
    smg_kernel_unroll(b.k, &target);
    int at = 0;
    while (b.k->code.items[at].kind != SMG_I_LOOP || b.k->code.items[at + 1].kind == SMG_I_LOOP) at++;
    int unroll = b.k->code.items[at].unroll;
    bench_close(&b);
    return unroll;
}

/* What runs once is fetched once: a short loop of little code is written out, others where a loop repeats them. */
static void test_written(void **state) {
    (void)state;
    assert_int_equal(written(2, 1, false), 1);
    assert_int_equal(written(4, 1, false), 1);
    assert_int_equal(written(5, 1, false), -1);
    assert_int_equal(written(17, 1, false), -1);
    assert_int_equal(written(4, 100, false), -1);
    assert_int_equal(written(5, 1, true), 1);
    assert_int_equal(written(16, 1, true), 1);
    assert_int_equal(written(17, 1, true), 0);
    assert_int_equal(written(4, 100, true), 1);
}

static void test_beside(void **state) {
    (void)state;
    check_product(beside, 32, 1, 32);
}

/* Of the elements that lie where whole matrices have those of a lane, each lane has runs of eight, of both factors. */
static void check_lane_runs(const smg_matrix *m, int run, const smg_layout *factor, int side, int lane) {
    bool has[1 << SMG_MATRIX_BITS] = {false};
    for (int at = 0; at < 1 << run; at++) {
        int64_t place = smg_matrix_place_in_runs(m, at) % m->depth;
        int64_t own = smg_layout_part(factor, side, SMG_LAYOUT_LANE, lane);
        for (int64_t reg = 0; reg < smg_layout_registers(factor); reg++)
            has[at] = has[at] || (own | smg_layout_part(factor, side, SMG_LAYOUT_REGISTER, reg)) == place;
    }
    for (int at = 0; at < 1 << run; at++) assert_int_equal(has[at], has[at / SMG_WIDEST * SMG_WIDEST]);
}

static void check_places(const smg_matrix *m, int lanes) {
    int run = smg_matrix_in_runs(m).run;
    bool taken[1 << SMG_MATRIX_BITS] = {false};
    for (int at = 0; at < 1 << run; at++) {
        int64_t place = smg_matrix_place_in_runs(m, at);
        assert_true(place >= 0 && place < 1 << run && !taken[place]);
        taken[place] = true;
        assert_int_equal(smg_matrix_place_in_runs(m, at + (3 << run)), place + (3 << run));
    }
    for (int lane = 0; lane < lanes; lane++) {
        check_lane_runs(m, run, &m->left, 1, lane);
        check_lane_runs(m, run, &m->right, 0, lane);
    }
}

/* As lanes of several devices have 16-bit factors, in the order of their k. */
static void test_places(void **state) {
    static const struct {
        int lanes, side;
        const char *sums, *left, *right;
        int first; /* the place of element 1 */
        bool own;
    } cases[] = {
        {32, 16, "registers column*2 column*2:8 row*2:8 lanes column*4:2 row*8",
         "registers column*2 column*2:8 row*2:8 lanes column*4:2 row*8",
         "registers row*2 row*2:8 column*2:8 lanes row*4:2 column*8", 1, false},
        {32, 16, "registers row*8:2 lanes column*16 row*2", "registers column*16 lanes row*16 *2",
         "registers row*16 lanes column*16 *2", 1, true},
        {32, 16, "registers row*8 lanes column*16 row*2:8", "registers column*8 lanes row*16 column*2:8",
         "registers row*8 lanes column*16 row*2:8", 1, true},
        {8, 8, "registers row*8 lanes column*8", "registers row*8 lanes column*8", "registers column*8 lanes row*8", 8,
         false},
        {8, 4, "registers column*2 lanes column*2:2 row*4", "registers column*2 lanes column*2:2 row*4",
         "registers row*2 lanes row*2:2 column*4", 1, false},
    };
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        char text[1024];
        bench b;
        (void)snprintf(text, sizeof text,
                       "kernel places\nlanes %d subgroup %d numbered\naxis i = 16 tile 16 grid\ngrid i\n"
                       "matrix %d %d %d f16 %s\nleft %s\nright %s\ncode\n",
                       cases[i].lanes, cases[i].lanes, cases[i].side, cases[i].side, cases[i].side, cases[i].sums,
                       cases[i].left, cases[i].right);
        bench_open(&b, text);
        check_places(&b.k->matrix, cases[i].lanes);
        assert_int_equal(smg_matrix_place_in_runs(&b.k->matrix, 1), cases[i].first);
        assert_int_equal(smg_matrix_has_own_order(&b.k->matrix), cases[i].own);
        bench_close(&b);
    }
}

/* So do sums that subgroups make whole a share each. */
static void test_shares(void **state) {
    (void)state;
    check_product(shares, 64, 1, 64);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_verdicts),       cmocka_unit_test(test_shared_out),
                                       cmocka_unit_test(test_chain),          cmocka_unit_test(test_ring),
                                       cmocka_unit_test(test_stream),         cmocka_unit_test(test_shares),
                                       cmocka_unit_test(test_beside),         cmocka_unit_test(test_places),
                                       cmocka_unit_test(test_opaque_by_lane), cmocka_unit_test(test_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
