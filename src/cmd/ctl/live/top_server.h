/*
 * One server that `vigil top` reads: its client, and the status and metrics of every interval. Both
 * requests are under way at the same time; the client's callbacks are made by the owner, with
 * top_server_process or ctl_wait. The main thread.
 */
#ifndef VIGIL_CMD_CTL_LIVE_TOP_SERVER_H
#define VIGIL_CMD_CTL_LIVE_TOP_SERVER_H

#include "cmd/ctl/live/fetch.h"
#include "cmd/ctl/live/top_report.h"

struct top_server {
    const char *endpoint; /* borrowed */
    vigil_client *client; /* owned */
    struct fetch *fetch;  /* NULL: the endpoint has no HTTP */
    struct metrics older, now;
    vigil_error metrics_error;
    vigil_call *status_call; /* NULL: none is under way */
    struct top_status status;
    bool status_done;
};

/* False: there is no client, and *ret_exit is the exit code. It may be finished then, too. */
bool top_server_init(struct top_server *server, struct ctl *ctl, const char *endpoint,
                     int *ret_exit);
void top_server_fini(struct top_server *server);

/* Begins to read, unless the last reading is still under way. */
void top_server_start(struct top_server *server);
bool top_server_is_read(const struct top_server *server);
/* Afterwards: the page before becomes the older one. */
void top_server_take(struct top_server *server);
/* Neither status nor metrics could be read. */
bool top_server_has_failed(const struct top_server *server);

void top_server_report(const struct top_server *server, double wall_s, struct top_report *report);

#endif
