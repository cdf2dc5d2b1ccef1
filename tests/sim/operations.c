#include "operations.h"

#include "actors.h"
#include "base/xalloc.h"
#include "compare.h"
#include "coverage.h"
#include "leases.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

enum { OPERATIONS_MAX = 4096 };

static struct {
    struct operation *all[OPERATIONS_MAX]; /* owned */
    size_t count;
    size_t first_unchecked;
    int64_t seen;
    int64_t compacted;        /* done */
    int64_t compacted_wanted; /* begun */
} operations;

void operations_begin(void)
{
    operations.count = operations.first_unchecked = 0;
    operations.seen = 1;
    operations.compacted = operations.compacted_wanted = 0;
}

void operations_end(void)
{
    for (size_t i = 0; i < operations.count; i++) {
        free(operations.all[i]->versions);
        free(operations.all[i]);
    }
    operations.count = 0;
}

int64_t operations_seen(void)
{
    return operations.seen;
}

void operations_see(int64_t revision)
{
    operations.seen = revision > operations.seen ? revision : operations.seen;
}

int64_t operations_compacted_ceiling(void)
{
    return operations.compacted_wanted;
}

size_t operations_count(void)
{
    return operations.count;
}

struct operation *operation_new(enum operation_kind kind, unsigned client)
{
    assert(operations.count < OPERATIONS_MAX);
    struct operation *op = xcalloc(1, sizeof(*op));
    *op = (struct operation){
        .kind = kind,
        .client = client,
        .number = (unsigned)operations.count,
        .begun_ns = actors_now(),
        .floor = operations.seen,
        .compacted_floor = operations.compacted,
        .rights = {.right = RIGHT_EITHER},
    };
    operations.all[operations.count++] = op;
    coverage_add((enum coverage)kind);
    return op;
}

const char *operation_kind_name(enum operation_kind kind)
{
    static const char *const names[] = {"range", "put",    "delete",  "txn",
                                        "grant", "revoke", "compact", "lock"};
    return names[kind];
}

static void note_compaction(const struct operation *op)
{
    if (op->answer == ANSWER_OK && op->revision > operations.compacted)
        operations.compacted = op->revision;
}

void operations_want_compaction(int64_t revision)
{
    if (revision > operations.compacted_wanted)
        operations.compacted_wanted = revision;
}

void operation_done(struct operation *op)
{
    op->ended_ns = actors_now();
    op->compacted_ceiling = operations.compacted_wanted;
    trace_line("#%u client %u %s %s%s%s %s rev %lld lease %lld: %s %lld %s", op->number, op->client,
               operation_kind_name(op->kind), op->key, *op->end ? ".." : "", op->end, op->value,
               (long long)op->revision, (long long)op->lease,
               op->answer == ANSWER_OK        ? "ok"
               : op->answer == ANSWER_REFUSED ? "refused"
                                              : "unknown",
               (long long)op->header_revision, op->text);
    if (op->answer != ANSWER_OK)
        coverage_add(op->answer == ANSWER_REFUSED ? COVERAGE_REFUSED : COVERAGE_UNKNOWN);
    if (op->kind == OPERATION_COMPACT)
        note_compaction(op);
    if (op->answer == ANSWER_OK)
        operations_see(op->header_revision);
    compare_answer(op);
    operations_check_known();
}

bool operation_met_damage(const struct operation *op)
{
    const char *text = status_text(ST_CORRUPT);
    return op->answer != ANSWER_OK && strncmp(op->text, text, strlen(text)) == 0;
}

/* -- Deletions without a cause -- */

static bool inner_may_have_deleted(const struct operation *op, const struct version *change)
{
    if (op->kind != OPERATION_TXN || strcmp(op->inner_key, change->key) != 0)
        return false;
    return op->answer == ANSWER_OK ? op->header_revision == change->revision && op->succeeded
                                   : op->answer != ANSWER_REFUSED;
}

/* An operation without an answer yet may have: what it was answered is compared later. */
static bool may_have_deleted(const struct operation *op, const struct version *change)
{
    if (op->kind != OPERATION_DELETE || !range_has(op->key, op->end, change->key))
        return false;
    return op->answer == ANSWER_OK ? op->header_revision == change->revision && op->count
                                   : op->answer != ANSWER_REFUSED;
}

/* A lock that is not waited for any more is given up. */
static bool may_have_given_up(const struct operation *op, const struct version *before)
{
    return op->kind == OPERATION_LOCK && op->answer != ANSWER_OK && op->lease == before->lease &&
           range_has(LOCK_PREFIX, LOCK_PREFIX_END, before->key);
}

static bool may_have_revoked(const struct operation *op, int64_t lease)
{
    return op->kind == OPERATION_REVOKE && op->lease == lease && op->answer != ANSWER_REFUSED;
}

static void check_deletion(const struct version *change)
{
    const struct version *before = history_get(change->key, change->revision - 1);
    for (size_t i = 0; i < operations.count; i++) {
        const struct operation *op = operations.all[i];
        if (may_have_deleted(op, change) || inner_may_have_deleted(op, change) ||
            may_have_given_up(op, before) || (before->lease && may_have_revoked(op, before->lease)))
            return;
    }
    if (before->lease && leases_is_over(before->lease))
        return;
    violation("%s was deleted at revision %lld (seen at %.6f s): no client wanted that, and its "
              "lease %lld was not over",
              change->key, (long long)change->revision, (double)change->seen_ns / 1e9,
              (long long)before->lease);
}

/* -- Puts without a cause -- */

static void executed(struct operation *op, int64_t *ret_at, const struct version *change)
{
    if (*ret_at)
        violation(OP_FORMAT " was executed at revision %lld and again at %lld", OP_ARGS(op),
                  (long long)*ret_at, (long long)change->revision);
    if (op->answer == ANSWER_REFUSED)
        violation(OP_FORMAT " was refused (%s) and executed at revision %lld", OP_ARGS(op),
                  op->text, (long long)change->revision);
    *ret_at = change->revision;
}

static bool is_put_of(struct operation *op, const struct version *change)
{
    bool inner = *op->inner_value && strcmp(op->inner_value, change->value) == 0;
    if (!inner && (!*op->value || strcmp(op->value, change->value) != 0))
        return false;
    if (strcmp(change->key, inner ? op->inner_key : op->key) != 0 || change->lease != op->lease)
        violation(OP_FORMAT " has written %s with lease %lld", OP_ARGS(op), change->key,
                  (long long)change->lease);
    executed(op, inner ? &op->inner_executed : &op->executed, change);
    return true;
}

/* Only clients of etcd's API use these keys. */
static bool is_in_room(const char *key)
{
    return key[0] && key[1] == '/';
}

void operations_saw(const struct version *change)
{
    if (!change->number) {
        check_deletion(change);
        return;
    }
    if (!is_in_room(change->key))
        return;
    for (size_t i = operations.count; i-- > 0;)
        if (is_put_of(operations.all[i], change))
            return;
    violation("%s = %s was put at revision %lld: no client wanted that", change->key, change->value,
              (long long)change->revision);
}

/* -- When it is known what an operation has to be -- */

static bool is_decidable(const struct operation *op)
{
    return op->answer == ANSWER_OK ? op->header_revision <= history_revision()
                                   : op->answer != ANSWER_NONE;
}

void operations_check_known(void)
{
    for (size_t i = operations.first_unchecked; i < operations.count; i++) {
        struct operation *op = operations.all[i];
        if (op->checked || !is_decidable(op))
            continue;
        compare_with_history(op);
        op->checked = true;
    }
    while (operations.first_unchecked < operations.count &&
           operations.all[operations.first_unchecked]->checked)
        operations.first_unchecked++;
}

void operations_check(bool partial)
{
    operations_check_known();
    for (size_t i = operations.first_unchecked; i < operations.count && !partial; i++)
        if (!operations.all[i]->checked)
            compare_with_history(operations.all[i]);
    for (size_t i = 0; i < history_count(); i++)
        if (!history_at(i)->number)
            check_deletion(history_at(i));
}
