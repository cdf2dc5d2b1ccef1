/*
 * Values and their differences as indented lines:
 *
 *                    spec:
 *                  -   replicas: 1
 *                  +   replicas: 2
 *
 * What a server sends is shown safely (decode/safe_text.h); lines and their number are bounded.
 */
#ifndef VIGIL_CMD_CTL_EXPLORE_VALUE_VIEW_H
#define VIGIL_CMD_CTL_EXPLORE_VALUE_VIEW_H

#include "cmd/ctl/ctl.h"
#include "cmd/ctl/decode/decode.h"
#include "cmd/ctl/decode/line_diff.h"

enum {
    VALUE_VIEW_LINES_DEFAULT = 60,
    VALUE_VIEW_COLUMNS_MAX = 300, /* limit on the columns of one line */
    VALUE_VIEW_CONTEXT = 2,       /* unchanged lines around a change */
};

struct value_view {
    FILE *to;
    enum decode_kind decode; /* never auto or raw */
    bool colours;
    unsigned indent;
    uint64_t lines_max; /* 0: no limit */
    uint64_t shown;     /* lines of the current value */
};

/* From the flags of all commands. */
void value_view_init(struct value_view *view, const struct ctl *ctl, unsigned indent);

/* A whole value, each line with the sign. */
void value_view_put(struct value_view *view, enum line_sign sign, struct slice value);
/* What has changed; a line that says so if only bytes differ that are not shown. */
void value_view_difference(struct value_view *view, struct slice before, struct slice after);

/* Begins and ends a colour, if there are colours. */
void value_view_colour(const struct value_view *view, const char *colour);

#endif
