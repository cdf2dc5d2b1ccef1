/*
 * Requests for progress on a stream of watches, and for which watches their answers are true.
 *
 * An answer is for all watches of the stream and says that everything up to its revision has been
 * sent. Two things can make that false:
 *
 * - Servers before etcd 3.4.31 and 3.5.13 answer before they have sent everything. So the version
 *   of the server is requested before the first one, and its answers are recognised by its member
 *   id; those of all other servers are early.
 * - The confirmation of a new watch may overtake answers to older requests, which do not cover it.
 *   Answers come in the order of the requests, but not every request is answered: the nth answer
 *   belongs to the nth request or a later one. So a watch is covered by an answer if more answers
 *   have come than requests were sent before its creation; also by those that follow one of its
 *   events, because these have the same way through the server as answers. The revision of an
 *   older answer is not above that of the confirmation.
 *
 *     unknown ── request ──► asking ──► known         every state ── broken ──► unknown
 *
 * Embedded in a stream of watches; the loop's thread.
 */
#ifndef VIGIL_CLIENT_WATCH_WATCH_PROGRESS_H
#define VIGIL_CLIENT_WATCH_WATCH_PROGRESS_H

#include "client/call/server_version.h"

struct pb_watch_response;

/* Zeroed at first, except for send. */
struct watch_progress {
    void (*send)(struct watch_progress *progress); /* sends a request, if the stream is open */
    struct server_inquiry inquiry;                 /* while asking */
    bool is_known;
    uint64_t member_id;       /* id of a server whose answers are not early; 0: none; if known */
    uint32_t sent, answered;  /* requests; the last answer belongs to this one or a later one */
    uint32_t created_after;   /* requests that were sent before the newest watch with an id */
    int64_t created_revision; /* the newest one at which a watch was confirmed */
};

/* A request, which is sent now or when the version is known. */
void watch_progress_request(struct watch_progress *progress, struct vigil_client *client);
/* The server has confirmed a watch, before whose creation this many requests were sent. */
void watch_progress_created(struct watch_progress *progress, uint32_t after, int64_t revision);
/* Takes an answer for all watches. True: it is early, so its revision means nothing. */
bool watch_progress_is_early(struct watch_progress *progress,
                             const struct pb_watch_response *response);
/* The answer covers a watch before whose creation this many requests were sent. */
static inline bool watch_progress_covers(const struct watch_progress *progress, uint32_t after)
{
    return after == 0 || progress->answered > after;
}
/* The stream is broken or over: the next one may have another server. */
void watch_progress_reset(struct watch_progress *progress);

#endif
