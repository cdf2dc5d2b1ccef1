#include "engine/local/state/messages.h"

#include "store/upkeep/cleaner.h"

#include <stdlib.h>

struct slice local_op_name(const struct engine_op *op)
{
    static const char *const names[ENGINE_KINDS] = {
        [ENGINE_DELETE_RANGE] = "a delete",
        [ENGINE_TXN] = "a transaction",
        [ENGINE_COMPACT] = "a compaction",
        [ENGINE_ALARM] = "an alarm",
        [ENGINE_DOWNGRADE] = "a downgrade",
        [ENGINE_MEMBERS] = "a request about members",
        [ENGINE_AUTH] = "a request about users or roles",
        [ENGINE_HASH_KV] = "a hash of all keys",
        [ENGINE_SNAPSHOT_START] = "a snapshot",
        [ENGINE_DEFRAGMENT] = "a defragmentation",
        [ENGINE_LEASE_GRANT] = "the grant of a lease",
        [ENGINE_LEASE_REVOKE] = "the revocation of a lease",
        [ENGINE_LEASE_TIME_TO_LIVE] = "a lease's time to live",
        [ENGINE_LEASE_LIST] = "the list of leases",
    };
    const char *name = op->kind < ENGINE_KINDS ? names[op->kind] : NULL;
    return name ? slice_from_text(name) : SLICE_EMPTY;
}

void local_job_free(struct local_job *job)
{
    relocation_free(job->relocation);
    free(job);
}

void local_answer_chain(struct local_shard_base *shard, const struct mailbox_chain *chain)
{
    if (shard->is_direct) {
        chain->last->next = NULL;
        op_of(chain->first)->done(op_of(chain->first));
        return;
    }
    atomic_fetch_add(&shard->posting, 1);
    mailbox_post_chain(&shard->answers, chain);
    atomic_fetch_sub(&shard->posting, 1);
}

void local_answer(struct engine_op *op)
{
    struct local_shard_base *shard = CONTAINER_OF(op->shard, struct local_shard_base, shard);
    local_answer_chain(shard, &(struct mailbox_chain){&op->in_mailbox, &op->in_mailbox});
}

void local_refuse(struct mailbox_node *node, enum status status)
{
    for (struct mailbox_node *next; node; node = next) {
        next = node->next;
        struct engine_op *op = op_of(node);
        op->status = status;
        if (op->kind == LOCAL_MIRROR)
            op->done(op);
        else
            local_answer(op);
    }
}

void local_refuse_chain(struct mailbox_chain *chain, enum status status)
{
    struct mailbox_node *first = chain->first;
    *chain = (struct mailbox_chain){0};
    local_refuse(first, status);
}
