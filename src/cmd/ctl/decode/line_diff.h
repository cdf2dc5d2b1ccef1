/*
 * The difference between two texts, line by line:
 *
 *       spec:
 *     -   replicas: 1
 *     +   replicas: 2
 *
 * The shortest one (Myers, "An O(ND) Difference Algorithm", 1986) if it has at most
 * LINE_DIFF_CHANGES_MAX changed lines; otherwise everything between the first and the last changed
 * line is removed and added. So time and memory are bounded by the length of the texts and by that
 * constant. No shared state.
 */
#ifndef VIGIL_CMD_CTL_DECODE_LINE_DIFF_H
#define VIGIL_CMD_CTL_DECODE_LINE_DIFF_H

#include "base/slice.h"
#include "base/status.h"

enum { LINE_DIFF_CHANGES_MAX = 1000 };

enum line_sign {
    LINE_SAME = ' ',
    LINE_REMOVED = '-',
    LINE_ADDED = '+',
    LINE_SKIPPED = '@', /* unchanged lines are left out here; the text is empty */
};

struct line_diff {
    unsigned context; /* unchanged lines before and after a change that are shown */
    /* Called for each line, without its line feed. */
    void (*fn)(void *ctx, enum line_sign sign, struct slice line);
    void *ctx;
};

/* fn is not called if the texts are equal. A missing line feed at the end is not a difference.
 * ST_NOMEM: fn was not called. */
MUST_CHECK
enum status line_diff(const struct line_diff *diff, struct slice before, struct slice after);

#endif
