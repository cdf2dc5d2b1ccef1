/* For tests: a struct ctl whose output is kept, as if no terminal were there. */
#ifndef VIGIL_CMD_CTL_EXPLORE_OUTPUT_TEST_H
#define VIGIL_CMD_CTL_EXPLORE_OUTPUT_TEST_H

#include "cmd/ctl/ctl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct output {
    struct ctl ctl;
    struct arena arena;
    char *text;
    size_t len;
};

static inline void output_init(struct output *output, enum ctl_format format, int decode)
{
    *output = (struct output){.ctl = {.globals = {.format = (int)format, .decode = decode}}};
    arena_init(&output->arena, NULL, 0, 16 << 20);
    output->ctl.arena = &output->arena;
    output->ctl.out = open_memstream(&output->text, &output->len);
    assert_non_null(output->ctl.out);
}

/* Compares what was written and frees everything. */
static inline void output_finish(struct output *output, const char *expected)
{
    fclose(output->ctl.out);
    assert_string_equal(output->text, expected);
    assert_int_equal(output->len, strlen(expected));
    free(output->text);
    arena_fini(&output->arena);
}

#endif
