/*
 * Reads a server's page of metrics, /metrics of one endpoint, over HTTP with the TLS of the
 * command. The request is under way on another thread; fetch_done says when it has ended. One
 * owner.
 */
#ifndef VIGIL_CMD_CTL_LIVE_FETCH_H
#define VIGIL_CMD_CTL_LIVE_FETCH_H

#include "cmd/ctl/ctl.h"
#include "cmd/ctl/live/metrics.h"

struct fetch;

/* endpoint: as in --endpoints. NULL: it has no HTTP (a UNIX socket), or the client cannot be made;
 * *ret_error says why. */
struct fetch *fetch_new(const struct ctl *ctl, const char *endpoint, vigil_error *ret_error);
void fetch_free(struct fetch *fetch);

/* Begins a request, unless one is under way. */
void fetch_start(struct fetch *fetch);
bool fetch_is_running(const struct fetch *fetch);
/* After the end: fills the metrics, or returns false with the error. It may be called once. */
bool fetch_take(struct fetch *fetch, struct metrics *metrics, vigil_error *ret_error);
/* Reads another page, such as /readyz, and waits for it; without an answer within two seconds it
 * gives up. True: a server has answered with a page, also if that is an error; *ret_good: it is
 * not one. The text is its first line, or that of the first check that
 * has failed, and is cut. */
bool fetch_page(struct fetch *fetch, const char *path, char *text, size_t room, bool *ret_good);
/* Begins a request and waits for its end. */
bool fetch_run(struct fetch *fetch, struct metrics *metrics, vigil_error *ret_error);

#endif
