/* What a watch delivers, as text. */
#ifndef VIGIL_CMD_CTL_KV_WATCH_PRINT_H
#define VIGIL_CMD_CTL_KV_WATCH_PRINT_H

#include "cmd/ctl/ctl.h"

/* Events, progress and the end of a watch, in the format that was chosen. Returns the exit code. */
int watch_print(struct ctl *ctl, const vigil_watch_batch *batch);

/* Whether events are shown with their times and differences (explore/change_view.h), not as etcdctl
 * does. */
bool watch_shows_changes(const struct ctl *ctl);

#endif
