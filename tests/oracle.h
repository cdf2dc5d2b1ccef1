/*
 * How the programs answer that are compared with the code of others: they read requests from
 * standard input, each a letter and texts with length prefixes (32 bits, big-endian), and answer
 * with '+' or '-' and a text. tests/oracle.py and tests/kube/subject are the other side.
 */
#ifndef VIGIL_TESTS_ORACLE_H
#define VIGIL_TESTS_ORACLE_H

#include "base/memory/arena.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { ORACLE_TEXT_BYTES_MAX = 16 << 20 };

static inline void oracle_fail(const char *why)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, why);
    exit(2);
}

static inline struct slice oracle_read(struct arena *arena)
{
    uint8_t head[4];
    if (fread(head, 1, sizeof(head), stdin) != sizeof(head))
        oracle_fail("the input ends early");
    size_t len = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    uint8_t *text = len <= ORACLE_TEXT_BYTES_MAX ? arena_alloc(arena, len + 1) : NULL;
    if (!text || fread(text, 1, len, stdin) != len)
        oracle_fail("a text is too long, or the input ends early");
    return slice_of(text, len);
}

static inline void oracle_answer(char letter, struct slice text)
{
    uint8_t head[] = {(uint8_t)letter, (uint8_t)(text.len >> 24), (uint8_t)(text.len >> 16),
                      (uint8_t)(text.len >> 8), (uint8_t)text.len};
    fwrite(head, 1, sizeof(head), stdout);
    if (text.len)
        fwrite(text.ptr, 1, text.len, stdout);
    fflush(stdout);
}

#endif
