/* What the tests of the runtime use of cmocka, for systems that it is not packaged for: the first assertion that does not
 * hold ends the program. */
#ifndef TESTS_RUNTIME_CMOCKA_H
#define TESTS_RUNTIME_CMOCKA_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__MINGW32__)
__attribute__((format(gnu_printf, 3, 4)))
#else
__attribute__((format(printf, 3, 4)))
#endif
static inline void
check_that(int holds, const char *where, const char *format, ...) {
    if (holds) return;
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", where);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    exit(1);
}

#define CHECK_TEXT_(line) #line
#define CHECK_TEXT(line) CHECK_TEXT_(line)
#define CHECK_WHERE __FILE__ ":" CHECK_TEXT(__LINE__)

static inline void check_number(int equal, unsigned long long a, unsigned long long b, const char *names,
                                const char *where) {
    check_that((a == b) == equal, where, "%s: %lld and %lld", names, (long long)a, (long long)b);
}

static inline void check_range(unsigned long long a, unsigned long long low, unsigned long long high, const char *name,
                               const char *where) {
    check_that(a >= low && a <= high, where, "%s is %lld", name, (long long)a);
}

static inline void check_text(int equal, const char *a, const char *b, const char *where) {
    check_that((strcmp(a, b) == 0) == equal, where, "'%s' and '%s'", a, b);
}

#define CHECK_NUMBER(x) ((unsigned long long)(x))
#define assert_true(a) check_that(!!(a), CHECK_WHERE, "%s does not hold", #a)
#define assert_false(a) check_that(!(a), CHECK_WHERE, "%s holds", #a)
#define assert_null(a) check_that((a) == NULL, CHECK_WHERE, "%s is there", #a)
#define assert_non_null(a) check_that((a) != NULL, CHECK_WHERE, "%s is NULL", #a)
#define assert_int_equal(a, b) check_number(1, CHECK_NUMBER(a), CHECK_NUMBER(b), #a ", " #b, CHECK_WHERE)
#define assert_int_not_equal(a, b) check_number(0, CHECK_NUMBER(a), CHECK_NUMBER(b), #a ", " #b, CHECK_WHERE)
#define assert_ptr_equal(a, b) check_that((a) == (b), CHECK_WHERE, "%s is not %s", #a, #b)
#define assert_in_range(a, low, high)                                                                                  \
    check_range(CHECK_NUMBER(a), CHECK_NUMBER(low), CHECK_NUMBER(high), #a, CHECK_WHERE)
#define assert_string_equal(a, b) check_text(1, a, b, CHECK_WHERE)
#define assert_string_not_equal(a, b) check_text(0, a, b, CHECK_WHERE)
#define assert_memory_equal(a, b, size) check_that(memcmp(a, b, size) == 0, CHECK_WHERE, "%s is not %s", #a, #b)
#define fail() check_that(0, CHECK_WHERE, "failed")
#define fail_msg(...) check_that(0, CHECK_WHERE, __VA_ARGS__)
#define print_message printf

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
    int (*setup)(void **state), (*teardown)(void **state);
};
#define cmocka_unit_test(f) {#f, f, NULL, NULL}
#define cmocka_unit_test_setup_teardown(f, setup, teardown) {#f, f, setup, teardown}

static inline int check_all(const struct CMUnitTest *tests, size_t count, int (*setup)(void **state),
                            int (*teardown)(void **state)) {
    void *group = NULL;
    if (setup != NULL) check_that(setup(&group) == 0, "setup", "failed");
    for (size_t i = 0; i < count; i++) {
        void *state = group;
        if (tests[i].setup != NULL) check_that(tests[i].setup(&state) == 0, tests[i].name, "setup failed");
        tests[i].run(&state);
        if (tests[i].teardown != NULL) check_that(tests[i].teardown(&state) == 0, tests[i].name, "teardown failed");
        printf("%s: passed\n", tests[i].name);
    }
    if (teardown != NULL) check_that(teardown(&group) == 0, "teardown", "failed");
    return 0;
}
#define cmocka_run_group_tests(tests, setup, teardown)                                                                 \
    check_all(tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)
#define cmocka_run_group_tests_name(name, tests, setup, teardown) cmocka_run_group_tests(tests, setup, teardown)

#endif
