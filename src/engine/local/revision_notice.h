/*
 * How the writer tells a shard that there are new revisions: at most one message on its way to each
 * shard, none to a shard where nobody watches.
 *
 * Owned by the engine and not by the shard, so that the writer never meets one that has gone. The
 * shard listens and receives on its thread; the writer tells on its own.
 */
#ifndef VIGIL_ENGINE_LOCAL_REVISION_NOTICE_H
#define VIGIL_ENGINE_LOCAL_REVISION_NOTICE_H

#include "io/mailbox.h"

#include <stdatomic.h>

struct local_news {
    _Atomic unsigned state;   /* NEWS_… */
    _Atomic unsigned telling; /* the writer may be looking at `to` */
    _Atomic int64_t taken;    /* the shard has looked at everything up to here */
    struct mailbox *to;       /* the shard's; set before it is first wanted */
    struct mailbox_node node; /* the message */
    int64_t told_ns;          /* when it was sent; the shard's to read once it has come */
};

/* -- The shard's side -- */

/* From here on, what is published after this returns is told; look for what was before. */
void local_news_listen(struct local_news *news, bool wanted);
/* It has looked at everything up to that revision, and sent what could be sent of it. */
void local_news_taken(struct local_news *news, int64_t revision);
/* The message has come: the next one may be sent. Look for what is new after this, not before. */
void local_news_received(struct local_news *news);
/*
 * For a while the shard will not look, and need not be told. True: no message is on its way, and
 * none comes until local_news_received; look for what is new after that. False: one is; it will
 * come.
 */
MUST_CHECK
bool local_news_hold(struct local_news *news);
/* Nothing will be posted any more; what is in the mailbox stays there. */
void local_news_end(struct local_news *news);

/* -- The writer's side -- */

/* After publishing. */
void local_news_tell(struct local_news *news);
/* The shard listens and has yet to look at something up to that revision. */
bool local_news_lags(struct local_news *news, int64_t revision);

#endif
