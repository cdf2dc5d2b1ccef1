/*
 * Changes of keys, as `vigil watch` and `vigil history` show them:
 *
 *     10:22:31.512  PUT     /app/color  revision 1240, version 3
 *                   - green
 *                   + blue
 *     10:22:33.020  DELETE  /app/color  revision 1241
 *
 * With -w json and -w jsonl one object per line, with readable keys and values:
 *
 *     {"time":"2026-11-16T10:22:31.512Z","type":"PUT","key":"/app/color","value":"blue",…}
 */
#ifndef VIGIL_CMD_CTL_EXPLORE_CHANGE_VIEW_H
#define VIGIL_CMD_CTL_EXPLORE_CHANGE_VIEW_H

#include "cmd/ctl/explore/value_view.h"

struct change_view {
    struct ctl *ctl;
    struct value_view values;
    bool json;        /* one object per line */
    bool differences; /* otherwise only the first lines */
    bool old_times;   /* changes of the past: the time is what the object says, if it says it */
};

void change_view_init(struct change_view *view, struct ctl *ctl);

/* event->prev_kv: the value before, for the difference; NULL: not known, or there was none.
 * wall_ns: when the event arrived; it is not used with old_times. */
void change_view_show(struct change_view *view, const vigil_event *event, int64_t wall_ns);

#endif
