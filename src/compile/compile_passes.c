/* compile_passes.c: which pass of tuning a step of the first run list is of, and the schedule that it has there. */
#include "compile/compile.h"

#define LEAD_SECONDS 30e-6 /* until a device is on its way; by price */
#define MOST_LEADS 8       /* each is a pass of its own in the run list */

int smg_compile_leads(const smg_compilation *c) {
    double seconds = 0;
    int leads = 1;
    if (c->options.passes.rivals == 0) return 0;
    for (int i = 0; i < c->plan->steps.count; i++) seconds += c->plan->steps.items[i].price.seconds;
    while (leads < MOST_LEADS && leads * seconds < LEAD_SECONDS) leads++;
    return leads;
}

int smg_compile_pass(const smg_compilation *c, int step) {
    int turn = step / c->plan->steps.count, leads = smg_compile_leads(c);
    return c->options.passes.from + (turn > leads ? turn - leads : 0);
}

const smg_choice *smg_compile_choice(const smg_compilation *c, int step) {
    const smg_pstep *of = &c->plan->steps.items[step % c->plan->steps.count];
    int rival = smg_compile_pass(c, step) - 1;
    return rival >= 0 && rival < of->rivals.count ? &of->rivals.items[rival].choice : &of->choice;
}
