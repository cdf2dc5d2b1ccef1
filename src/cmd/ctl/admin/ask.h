/*
 * Questions to several endpoints at the same time, so that one that does not answer costs its
 * timeout once and not once for each endpoint after it.
 *
 * Each endpoint has a client and, until it has answered, a thread; at most ASK_THREADS_MAX at a
 * time.
 */
#ifndef VIGIL_CMD_CTL_ADMIN_ASK_H
#define VIGIL_CMD_CTL_ADMIN_ASK_H

#include "cmd/ctl/session.h"

enum { ASK_THREADS_MAX = 32 };

/* One endpoint and its answer. */
struct asked {
    struct ctl *ctl;
    const char *endpoint;
    vigil_client *client;
    void (*ask)(struct asked *asked); /* on its thread; it may use ask_call alone */

    vigil_call *calls[2]; /* have the answers */
    size_t call_count;
    const void *response; /* NULL: there is an error */
    vigil_error error;
    int64_t took_ns;
};

struct asked_list {
    struct asked *items; /* in the order of the endpoints */
    size_t count;
};

/* Asks the endpoints that were given, or with `cluster` all members'. Not CTL_OK: there is no
 * client, and the reason was printed. */
int ask_all(struct ctl *ctl, bool cluster, void (*ask)(struct asked *asked),
            struct asked_list *ret_list);

void ask_free(struct asked_list *list);

/* One call within `ask`, at most two of them, each at most --command-timeout. Fills response or
 * error, and took_ns. The answer lives until ask_free. */
void ask_call(struct asked *asked, enum client_method_id method, const void *request);

/* The text of its error, as admin_error_text; not within `ask`. */
const char *ask_error_text(const struct asked *asked);

#endif
