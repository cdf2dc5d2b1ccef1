/*
 * Answers in the middle of a long request: leases are renewed although a delete of a million keys
 * is under way. No answer may depend on changes that are not durable. So a call for a lease that
 * the group has granted or revoked, or is revoking, waits for the end of the group, and so do all
 * calls if permissions may have changed. Otherwise a request only changes which keys are attached
 * to a lease, which these answers do not show.
 */
#include "base/clock.h"
#include "engine/local/writer/writer.h"
#include "engine/permission.h"

/* The lease existed before the group and is not being revoked, so clients may see it. */
static bool is_settled(const struct local_writer *writer, int64_t id)
{
    assert(writer->granted_count < WRITER_GRANTS_MAX); /* otherwise some grants are not in it */
    for (unsigned i = 0; i < writer->granted_count; i++)
        if (writer->granted[i] == id)
            return false;
    return id != writer->lease->revoking && lessor_has(writer->lease->lessor, id);
}

static bool is_early(const struct local_writer *writer, const struct engine_op *op)
{
    const struct engine_renewals *renewals = CONTAINER_OF(op, const struct engine_renewals, op);
    const struct engine_lease *question = CONTAINER_OF(op, const struct engine_lease, op);
    if (op->kind == ENGINE_LEASE_TIME_TO_LIVE)
        return !question->want_keys && is_settled(writer, question->id);
    if (op->kind != ENGINE_LEASE_RENEW)
        return false;
    for (size_t i = renewals->answered; i < renewals->count; i++)
        if (!is_settled(writer, renewals->items[i].id))
            return false;
    return true;
}

/* False: it must wait for the end of the group. */
static bool answer(struct local_writer *writer, struct engine_op *op, int64_t time_ns)
{
    if (!is_early(writer, op))
        return false;
    op->status = permission_check(op, writer->shared->auth.state.rights, &writer->lease->keys_of);
    if (op->status == ST_OK && !local_lease_read(writer->lease, op, time_ns))
        return false; /* the lease has expired, and must be revoked in a group */
    op->revision = writer->committed_revision;
    mailbox_chain_add(&writer->early[local_shard_number(op)], &op->in_mailbox);
    return true;
}

void local_writer_answer_early(void *ctx)
{
    struct local_writer *writer = ctx;
    struct mailbox_chain left = {0};
    if (writer->rights_pending || writer->granted_count == WRITER_GRANTS_MAX)
        return; /* everything waits for the end of the group */
    struct mailbox_node *taken[] = {writer->lease_left, mailbox_take(&writer->inbox->lease_reads)};
    int64_t time_ns = clock_mono_ns(clock_system());
    for (size_t i = 0; i < COUNT_OF(taken); i++) {
        for (struct mailbox_node *node = taken[i], *next; node; node = next) {
            next = node->next;
            if (!answer(writer, op_of(node), time_ns))
                mailbox_chain_add(&left, node);
        }
    }
    writer->lease_left = left.first;
    local_answers_send(writer->shared, writer->early);
}
