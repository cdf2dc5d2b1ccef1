#include "operations.h"

#include "actors.h"
#include "base/xalloc.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

#include <vigil/types.h>

enum { OPERATIONS_MAX = 4096 };

static struct {
    struct operation *all[OPERATIONS_MAX]; /* owned */
    size_t count;
    int64_t seen;
    int64_t compacted;        /* done */
    int64_t compacted_wanted; /* begun */
} operations;

void operations_begin(void)
{
    operations.count = 0;
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
    };
    operations.all[operations.count++] = op;
    return op;
}

static const char *const kinds[] = {"range", "put", "delete", "txn", "grant", "revoke", "compact"};

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
    trace_line("#%u client %u %s %s%s%s %s rev %lld: %s %lld %s", op->number, op->client,
               kinds[op->kind], op->key, *op->end ? ".." : "", op->end, op->value,
               (long long)op->revision,
               op->answer == ANSWER_OK        ? "ok"
               : op->answer == ANSWER_REFUSED ? "refused"
                                              : "unknown",
               (long long)op->header_revision, op->text);
    if (op->kind == OPERATION_COMPACT)
        note_compaction(op);
    if (op->answer == ANSWER_OK)
        operations_see(op->header_revision);
}

/* -- Checks -- */

#define OP_FORMAT "operation #%u (client %u, %s %s %s)"
#define OP_ARGS(op) (op)->number, (op)->client, kinds[(op)->kind], (op)->key, (op)->value

static void check_version(const struct operation *op, const struct version *got,
                          const struct version *expected)
{
    if (strcmp(got->key, expected->key) != 0 || strcmp(got->value, expected->value) != 0 ||
        got->revision != expected->revision || got->created != expected->created ||
        got->number != expected->number || got->lease != expected->lease)
        violation(OP_FORMAT " has %s = %s @%lld created %lld version %lld lease %lld, expected %s "
                            "= %s @%lld created %lld version %lld lease %lld",
                  OP_ARGS(op), got->key, got->value, (long long)got->revision,
                  (long long)got->created, (long long)got->number, (long long)got->lease,
                  expected->key, expected->value, (long long)expected->revision,
                  (long long)expected->created, (long long)expected->number,
                  (long long)expected->lease);
}

static void check_versions(const struct operation *op, int64_t revision, size_t limit)
{
    const struct version *expected[RANGE_MAX];
    size_t count = history_range(op->key, op->end, revision, expected);
    size_t shown = limit && limit < count ? limit : count;
    if (op->version_count != shown || (size_t)op->count != count || op->more != (shown < count))
        violation(OP_FORMAT " has %zu of %lld keys%s at revision %lld, expected %zu of %zu",
                  OP_ARGS(op), op->version_count, (long long)op->count, op->more ? ", more" : "",
                  (long long)revision, shown, count);
    for (size_t i = 0; i < shown; i++)
        check_version(op, &op->versions[i], expected[i]);
}

static void check_range(const struct operation *op)
{
    int64_t revision = op->revision ? op->revision : op->header_revision;
    if (op->answer == ANSWER_OK && op->revision && op->revision < op->compacted_floor && !op->lags)
        violation(OP_FORMAT " was answered at revision %lld, which was compacted", OP_ARGS(op),
                  (long long)op->revision);
    if (op->code == VIGIL_ERROR_COMPACTED &&
        (!op->revision || op->revision >= op->compacted_ceiling))
        violation(OP_FORMAT " failed as compacted at revision %lld", OP_ARGS(op),
                  (long long)op->revision);
    if (op->code == VIGIL_ERROR_FUTURE_REVISION && op->revision <= op->floor)
        violation(OP_FORMAT ": revision %lld is refused as one of the future", OP_ARGS(op),
                  (long long)op->revision);
    if (op->answer == ANSWER_OK)
        check_versions(op, revision, (size_t)op->limit);
}

/* The put with this unique value, wherever it is in the history; NULL: it was not executed. */
static const struct version *find_value(const struct operation *op, unsigned *ret_times)
{
    const struct version *found = NULL;
    *ret_times = 0;
    for (size_t i = 0; i < history_count(); i++) {
        const struct version *change = history_at(i);
        if (change->number && strcmp(change->value, op->value) == 0) {
            found = change;
            ++*ret_times;
        }
    }
    return found;
}

static void check_written(const struct operation *op, bool writes)
{
    unsigned times;
    const struct version *found = find_value(op, &times);
    if (times > 1)
        violation(OP_FORMAT " was executed %u times", OP_ARGS(op), times);
    if (op->answer == ANSWER_REFUSED && times)
        violation(OP_FORMAT " was refused (%s) and executed at revision %lld", OP_ARGS(op),
                  op->text, (long long)found->revision);
    if (found && (strcmp(found->key, op->key) != 0 || found->lease != op->lease))
        violation(OP_FORMAT " has written %s with lease %lld", OP_ARGS(op), found->key,
                  (long long)found->lease);
    if (op->answer != ANSWER_OK)
        return;
    if (writes != (times == 1))
        violation(OP_FORMAT " was answered at revision %lld, but is %s the history", OP_ARGS(op),
                  (long long)op->header_revision, times ? "in" : "not in");
    if (writes && found->revision != op->header_revision)
        violation(OP_FORMAT " was answered at revision %lld, but is at %lld", OP_ARGS(op),
                  (long long)op->header_revision, (long long)found->revision);
    if (writes && found->revision <= op->floor)
        violation(OP_FORMAT " has revision %lld, but %lld was seen before it began", OP_ARGS(op),
                  (long long)found->revision, (long long)op->floor);
}

static void check_put(const struct operation *op)
{
    check_written(op, true);
    if (op->answer != ANSWER_OK || !op->previous)
        return;
    const struct version *before = history_get(op->key, op->header_revision - 1);
    if (op->version_count != (before ? 1u : 0u))
        violation(OP_FORMAT " has %zu previous values", OP_ARGS(op), op->version_count);
    if (before)
        check_version(op, &op->versions[0], before);
}

static void check_txn(const struct operation *op)
{
    if (op->answer != ANSWER_OK) {
        check_written(op, false);
        return;
    }
    check_written(op, op->succeeded);
    int64_t revision = op->succeeded ? op->header_revision - 1 : op->header_revision;
    const struct version *before = history_get(op->key, revision);
    int64_t mod = before ? before->revision : 0;
    if (op->succeeded != (mod == op->compared))
        violation(OP_FORMAT " %s, but the key has revision %lld, compared with %lld", OP_ARGS(op),
                  op->succeeded ? "succeeded" : "did not succeed", (long long)mod,
                  (long long)op->compared);
    if (!op->succeeded)
        check_versions(op, revision, 0);
}

static unsigned deletions_at(const struct operation *op, int64_t revision)
{
    unsigned count = 0;
    for (size_t i = 0; i < history_count(); i++) {
        const struct version *change = history_at(i);
        if (change->revision == revision && !change->number &&
            range_has(op->key, op->end, change->key))
            count++;
    }
    return count;
}

static void check_delete(const struct operation *op)
{
    const struct version *expected[RANGE_MAX];
    if (op->answer != ANSWER_OK)
        return;
    int64_t revision = op->count ? op->header_revision - 1 : op->header_revision;
    size_t count = history_range(op->key, op->end, revision, expected);
    if (count != (size_t)op->count ||
        (count && deletions_at(op, op->header_revision) != (unsigned)op->count))
        violation(OP_FORMAT " has deleted %lld keys at revision %lld, expected %zu", OP_ARGS(op),
                  (long long)op->count, (long long)op->header_revision, count);
    if (count && op->header_revision <= op->floor)
        violation(OP_FORMAT " has revision %lld, but %lld was seen before it began", OP_ARGS(op),
                  (long long)op->header_revision, (long long)op->floor);
    for (size_t i = 0; op->previous && i < count; i++)
        check_version(op, &op->versions[i], expected[i]);
}

static void check_common(const struct operation *op)
{
    if (op->answer == ANSWER_OK && op->header_revision < op->floor)
        violation(OP_FORMAT " was answered at revision %lld, but %lld was seen before it began",
                  OP_ARGS(op), (long long)op->header_revision, (long long)op->floor);
    if (op->answer == ANSWER_OK && op->header_revision > history_revision())
        violation(OP_FORMAT " was answered at revision %lld, but there are only %lld", OP_ARGS(op),
                  (long long)op->header_revision, (long long)history_revision());
    if (op->answer == ANSWER_OK && op->forbidden)
        violation(OP_FORMAT " needs a permission that its user does not have", OP_ARGS(op));
    if (op->code == VIGIL_ERROR_PERMISSION_DENIED && op->permitted)
        violation(OP_FORMAT " was denied, but its user has the permission", OP_ARGS(op));
}

/* -- Deletions without a cause -- */

static bool may_have_deleted(const struct operation *op, const struct version *change)
{
    if (op->kind != OPERATION_DELETE || !range_has(op->key, op->end, change->key))
        return false;
    return op->answer == ANSWER_OK ? op->header_revision == change->revision && op->count
                                   : op->answer != ANSWER_REFUSED;
}

/* Leases end by a revocation, or when their time is over, which begins with the grant at the
 * earliest. */
static bool lease_may_have_ended(const struct operation *op, int64_t lease, int64_t seen_ns)
{
    if (op->lease != lease)
        return false;
    if (op->kind == OPERATION_REVOKE)
        return op->answer != ANSWER_REFUSED && op->begun_ns <= seen_ns;
    return op->kind == OPERATION_GRANT && op->begun_ns + op->ttl * NS_PER_S <= seen_ns;
}

static void check_deletion(const struct version *change)
{
    const struct version *before = history_get(change->key, change->revision - 1);
    for (size_t i = 0; i < operations.count; i++) {
        const struct operation *op = operations.all[i];
        if (may_have_deleted(op, change) ||
            (before->lease && lease_may_have_ended(op, before->lease, change->seen_ns)))
            return;
    }
    violation("%s was deleted at revision %lld (seen at %.6f s): no client wanted that, and its "
              "lease %lld was not over",
              change->key, (long long)change->revision, (double)change->seen_ns / 1e9,
              (long long)before->lease);
}

void operations_check(bool partial)
{
    for (size_t i = 0; i < operations.count; i++) {
        const struct operation *op = operations.all[i];
        if (partial && op->answer == ANSWER_OK && op->header_revision > history_revision())
            continue;
        check_common(op);
        if (op->kind == OPERATION_RANGE)
            check_range(op);
        else if (op->kind == OPERATION_PUT)
            check_put(op);
        else if (op->kind == OPERATION_TXN)
            check_txn(op);
        else if (op->kind == OPERATION_DELETE)
            check_delete(op);
    }
    for (size_t i = 0; i < history_count(); i++)
        if (!history_at(i)->number)
            check_deletion(history_at(i));
}
