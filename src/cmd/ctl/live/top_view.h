/*
 * A report of `vigil top` as lines for a screen, or as one line of JSON.
 */
#ifndef VIGIL_CMD_CTL_LIVE_TOP_VIEW_H
#define VIGIL_CMD_CTL_LIVE_TOP_VIEW_H

#include "base/buf.h"
#include "cmd/ctl/live/prefix_counts.h"
#include "cmd/ctl/live/top_report.h"

struct top_view {
    const char *endpoint;
    const char *metrics_error;          /* why there are no metrics; "" */
    const char *prefixes_error;         /* why no changes are counted; "" */
    const struct prefix_counts *counts; /* NULL: not wanted */
    enum prefix_order order;
    double counted_s; /* for how long */
    unsigned rows;    /* rows of the screen */
    int64_t wall_ns;
};

/* The line of one server in the list of several; before the first, the heading of the list. */
void top_view_server(struct buf *to, size_t place, bool is_shown, const char *endpoint,
                     const struct top_report *report);
/* Lines, of which headings begin with SCREEN_HEADING. */
void top_view_text(struct buf *to, const struct top_view *view, const struct top_report *report);
/* An object, with a line feed. */
void top_view_json(struct buf *to, const struct top_view *view, const struct top_report *report);

#endif
