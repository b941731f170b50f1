/* layout: its text, printed and read; what is no layout is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layout/layout.h"

static void add_name(const void *user, int axis, smg_text *text) {
    (void)user;
    smg_text_addf(text, "i%d", axis);
}

static void test_text(void **state) {
    (void)state;
    smg_context *ctx = NULL;
    smg_text text;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    smg_text_init(&text, ctx);
    smg_layout l = smg_layout_one();
    smg_layout_add(&l, SMG_LAYOUT_REGISTER, 5, 4);
    smg_layout_add(&l, SMG_LAYOUT_LANE, 5, 8);
    smg_layout_add(&l, SMG_LAYOUT_LANE, 3, 2);
    smg_layout_replicate(&l, SMG_LAYOUT_LANE, 2);
    smg_layout_add(&l, SMG_LAYOUT_SUBGROUP, 3, 4);
    smg_layout_add(&l, SMG_LAYOUT_REGISTER, 3, 2);
    smg_layout_repeat(&l, 5, 12);
    smg_layout_print(&l, add_name, NULL, &text);
    assert_string_equal(text.data, "registers i5*4 i3*2:8 i5*4:32 lanes i5*8:4 i3*2 *2 subgroups i3*4:2 repeat i5*3");
    smg_text_free(&text);
    smg_context_destroy(ctx);
}

static int take_axis(void *user, const char **io_at, const char *end) {
    (void)user;
    if (end - *io_at < 2 || **io_at != 'i') return -1;
    *io_at += 2;
    return (*io_at)[-1] - '0';
}

/* All of it, and a layout that is valid. */
static bool parse(const char *text, smg_layout *out_layout) {
    const char *at = text, *end = text + strlen(text), *why;
    *out_layout = smg_layout_one();
    return smg_layout_read(&at, end, take_axis, NULL, out_layout) == NULL && at == end &&
           smg_layout_valid(out_layout, &why);
}

static void test_parse(void **state) {
    (void)state;
    static const char *const good[] = {"", "registers i5*4 i3*2:8 i5*4:32 lanes i5*8:4 i3*8 *2 subgroups i3*4:16",
                                       "lanes i1*2:2 *4 i1*2", "registers *4",
                                       "registers i5*4 lanes i3*2 repeat i5*3 i3*5"};
    static const char *const bad[] = {"i3*4",
                                      "registers i3",
                                      "registers i3*3",
                                      "lanes x*4",
                                      "registers *4:2",
                                      "registers i3*4:3",
                                      "registers i3*2 i3*2",
                                      "registers i3*2:2",
                                      "lanes i3*-2",
                                      "lanes i3*2x",
                                      "lanes i3*9999999999",
                                      "lanes lanes i3*2",
                                      "lanes i3*2:",
                                      "registers i3*",
                                      "lanes i1*2 registers i3*2",
                                      "lanes i1*2 repeat i3*3",
                                      "lanes i1*2 repeat i1*2",
                                      "lanes i1*2 repeat *3",
                                      "lanes i1*2 repeat i1*9999999",
                                      "lanes i1*2,i3*2"};
    smg_context *ctx = NULL;
    smg_text text;
    smg_layout l;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    for (size_t i = 0; i < SMG_COUNT_OF(good); i++) {
        smg_text_init(&text, ctx);
        assert_true(parse(good[i], &l));
        smg_layout_print(&l, add_name, NULL, &text);
        assert_string_equal(smg_text_cstr(&text), good[i]);
        smg_text_free(&text);
    }
    for (size_t i = 0; i < SMG_COUNT_OF(bad); i++) assert_false(parse(bad[i], &l));
    smg_context_destroy(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text), cmocka_unit_test(test_parse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
