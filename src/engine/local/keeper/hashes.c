#include "engine/local/keeper/hashes.h"

#include "base/clock.h"
#include "engine/local/state/metrics.h"

enum { SLICE_BYTES = 512 << 10 }; /* slice of one store_hash_step */

static struct engine_hash *hash_of(struct engine_op *op)
{
    return CONTAINER_OF(op, struct engine_hash, op);
}

static int64_t now_ns(void)
{
    return clock_mono_ns(clock_system());
}

void local_hashes_init(struct local_hashes *hashes, const struct local_report *report,
                       struct upkeep *upkeep, struct metric_block *counts)
{
    *hashes = (struct local_hashes){.report = report, .upkeep = upkeep, .counts = counts};
}

/* -- Compactions -- */

static void noted_drop_first(struct local_hashes *hashes)
{
    hashes->noted_count--;
    memmove(&hashes->noted[0], &hashes->noted[1], hashes->noted_count * sizeof(hashes->noted[0]));
}

void local_hashes_note(struct local_hashes *hashes, int64_t before, int64_t revision)
{
    bool first_is_hashed = hashes->hashing && !hashes->served;
    if (hashes->noted_count == KEPT_HASHES && first_is_hashed)
        hashes->hashing = false; /* too old to be kept by the time it ends */
    if (hashes->noted_count == KEPT_HASHES)
        noted_drop_first(hashes);
    hashes->noted[hashes->noted_count++] =
        (struct kept_hash){.compact_revision = before, .revision = revision};
}

void local_hashes_forget_noted(struct local_hashes *hashes)
{
    if (hashes->hashing && !hashes->served)
        hashes->hashing = false;
    hashes->noted_count = 0;
}

/* A hash is not kept if the next compaction came before it ended; etcd's clients get the same
 * answer. */
static void keep(struct local_hashes *hashes, enum status status)
{
    struct kept_hash kept = hashes->noted[0];
    kept.hash = hashes->found.hash;
    if (status == ST_OK)
        hashes->kept[hashes->kept_count++ % KEPT_HASHES] = kept;
    else if (status != ST_COMPACTED)
        local_warn(hashes->report, "the hash of a compaction could not be computed", status, "");
    noted_drop_first(hashes);
}

static const struct kept_hash *find_kept(const struct local_hashes *hashes, int64_t revision)
{
    unsigned count = hashes->kept_count < KEPT_HASHES ? hashes->kept_count : KEPT_HASHES;
    for (unsigned i = 0; i < count; i++) {
        if (hashes->kept[i].revision == revision)
            return &hashes->kept[i];
    }
    return NULL;
}

/* -- Requests -- */

void local_hashes_request(struct local_hashes *hashes, struct engine_op *op)
{
    mailbox_chain_add(&hashes->waiting, &op->in_mailbox);
}

static void answer(struct engine_hash *op, const struct upkeep_hash *found, enum status status)
{
    op->op.revision = found->newest;
    op->hash = found->hash;
    op->compact_revision = found->compact_revision;
    op->hash_revision = found->revision;
    op->op.status = status;
    local_answer(&op->op);
}

/* Answers the waiting requests that were given up; with `all`, every one. */
static void answer_queue(struct local_hashes *hashes, bool all)
{
    struct mailbox_chain kept = {0};
    for (struct mailbox_node *node = hashes->waiting.first, *next; node; node = next) {
        next = node->next;
        struct engine_op *op = op_of(node);
        bool given_up = atomic_load(&op->given_up);
        if (all || given_up)
            answer(hash_of(op), &(struct upkeep_hash){0}, given_up ? ST_CANCELED : ST_STOPPED);
        else
            mailbox_chain_add(&kept, &op->in_mailbox);
    }
    hashes->waiting = kept;
}

static void begin_request(struct local_hashes *hashes)
{
    struct engine_hash *op = hash_of(op_of(mailbox_chain_take(&hashes->waiting)));
    const struct kept_hash *kept = find_kept(hashes, op->at_revision);
    enum status status;
    if (kept) {
        status = ST_OK;
        hashes->found = (struct upkeep_hash){
            .hash = kept->hash,
            .revision = kept->revision,
            .compact_revision = kept->compact_revision,
            .newest = upkeep_revision(hashes->upkeep),
        };
    } else {
        status = upkeep_hash_begin(hashes->upkeep, op->at_revision, &hashes->hash, &hashes->found);
    }
    if (kept || status != ST_OK) {
        answer(op, &hashes->found, status);
        return;
    }
    hashes->served = op;
    hashes->hashing = true;
}

/* -- Slices -- */

static void begin(struct local_hashes *hashes, bool may_begin)
{
    hashes->begun_ns = now_ns();
    if (hashes->noted_count) {
        upkeep_hash_begin_compaction(hashes->upkeep, hashes->noted[0].compact_revision,
                                     hashes->noted[0].revision, &hashes->hash);
        hashes->served = NULL;
        hashes->hashing = true;
    } else if (may_begin && hashes->waiting.first) {
        begin_request(hashes);
    }
}

static void end(struct local_hashes *hashes, enum status status)
{
    hashes->hashing = false;
    hashes->ended++;
    if (!hashes->served) {
        keep(hashes, status);
        return;
    }
    local_observe(hashes->counts, LOCAL_HASH_SECONDS, now_ns() - hashes->begun_ns);
    answer(TAKE(hashes->served), &hashes->found, status);
}

bool local_hashes_hold_cleaning(const struct local_hashes *hashes)
{
    return hashes->hashing || hashes->noted_count > 0;
}

bool local_hashes_busy(const struct local_hashes *hashes)
{
    return local_hashes_hold_cleaning(hashes) || hashes->waiting.first;
}

void local_hashes_turn(struct local_hashes *hashes, bool may_begin)
{
    answer_queue(hashes, false);
    if (!hashes->hashing)
        begin(hashes, may_begin);
    if (!hashes->hashing)
        return;
    enum status status = ST_CANCELED;
    if (!hashes->served || !atomic_load(&hashes->served->op.given_up))
        status = upkeep_hash_step(hashes->upkeep, &hashes->hash, SLICE_BYTES, &hashes->found.hash);
    if (status != ST_AGAIN)
        end(hashes, status);
}

void local_hashes_stop(struct local_hashes *hashes)
{
    if (hashes->hashing && hashes->served)
        end(hashes, ST_STOPPED);
    answer_queue(hashes, true);
}
