/*
 * How the writer notifies a shard of new revisions: with at most one message on its way to each
 * shard, and none to a shard without watches.
 *
 * Owned by the engine and not by the shard, so that the writer never uses one that was freed. The
 * shard listens and receives on its thread; the writer sends on its own.
 */
#ifndef VIGIL_ENGINE_LOCAL_STATE_REVISION_NOTICE_H
#define VIGIL_ENGINE_LOCAL_STATE_REVISION_NOTICE_H

#include "io/mailbox.h"

#include <stdatomic.h>

struct revision_notice {
    _Atomic unsigned state;   /* NOTICE_… */
    _Atomic unsigned sending; /* the writer may be using `to` */
    _Atomic int64_t seen;     /* the shard has read everything up to this revision */
    struct mailbox *to;       /* the shard's; set before the shard first listens */
    struct mailbox_node node; /* the message */
    int64_t sent_ns;          /* when it was sent; the shard may read it after receiving */
};

/* -- The shard's side -- */

/* After this returns, the shard is notified of everything that is published. It must look itself
 * for what was published before. */
void revision_notice_listen(struct revision_notice *notice, bool wanted);
/* The shard has read everything up to this revision, and sent what it could. */
void revision_notice_seen(struct revision_notice *notice, int64_t revision);
/* The message was received: another may be sent. Read new revisions after this, not before. */
void revision_notice_received(struct revision_notice *notice);
/*
 * The shard will not read new revisions for a while and need not be notified. True: no message is
 * on its way, and none is sent until revision_notice_received; read new revisions after that.
 * False: a message is on its way and will arrive.
 */
MUST_CHECK
bool revision_notice_hold(struct revision_notice *notice);
/* No message will be posted any more. A message that is in the mailbox stays there. */
void revision_notice_end(struct revision_notice *notice);

/* -- The writer's side -- */

/* After publishing. */
void revision_notice_send(struct revision_notice *notice);
/* The shard listens and has not read everything up to this revision. */
bool revision_notice_lags(struct revision_notice *notice, int64_t revision);

/* Asserts that it is consistent; for tests, while neither side uses it. */
void revision_notice_check(const struct revision_notice *notice);

#endif
