#include "compare.h"

#include "faults.h"
#include "front.h"

#include <string.h>

#include <vigil/types.h>

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

static void check_range_answer(const struct operation *op)
{
    if (op->answer == ANSWER_OK && op->revision && op->revision < op->compacted_floor && !op->lags)
        violation(OP_FORMAT " was answered at revision %lld, which was compacted", OP_ARGS(op),
                  (long long)op->revision);
    if (op->code == VIGIL_ERROR_COMPACTED &&
        (!op->revision || op->revision >= op->compacted_ceiling) &&
        !(op->lags && front_has_void_mirror(op->begun_ns)))
        violation(OP_FORMAT " failed as compacted at revision %lld", OP_ARGS(op),
                  (long long)op->revision);
    if (op->code == VIGIL_ERROR_FUTURE_REVISION && op->revision <= op->floor)
        violation(OP_FORMAT ": revision %lld is refused as one of the future", OP_ARGS(op),
                  (long long)op->revision);
}

static void check_range(const struct operation *op)
{
    if (op->answer == ANSWER_OK)
        check_versions(op, op->revision ? op->revision : op->header_revision, (size_t)op->limit);
}

/* A put has a unique value, so that operations_saw finds out where it was executed. */
static void check_written(const struct operation *op, bool writes)
{
    int64_t at = op->executed;
    if (op->answer == ANSWER_REFUSED && at)
        violation(OP_FORMAT " was refused (%s) and executed at revision %lld", OP_ARGS(op),
                  op->text, (long long)at);
    if (op->answer != ANSWER_OK)
        return;
    if (writes != (at != 0))
        violation(OP_FORMAT " was answered at revision %lld, but is %s the history", OP_ARGS(op),
                  (long long)op->header_revision, at ? "in" : "not in");
    if (writes && at != op->header_revision)
        violation(OP_FORMAT " was answered at revision %lld, but is at %lld", OP_ARGS(op),
                  (long long)op->header_revision, (long long)at);
    if (writes && at <= op->floor)
        violation(OP_FORMAT " has revision %lld, but %lld was seen before it began", OP_ARGS(op),
                  (long long)at, (long long)op->floor);
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

/* The inner transaction puts its key if there is none, and deletes it otherwise. */
static void check_inner(const struct operation *op)
{
    const struct version *before = history_get(op->inner_key, op->header_revision - 1);
    const struct version *after = history_get(op->inner_key, op->header_revision);
    if (!op->succeeded && op->inner_executed)
        violation(OP_FORMAT " did not succeed, but has put %s", OP_ARGS(op), op->inner_key);
    if (op->succeeded && op->inner_succeeded != !before)
        violation(OP_FORMAT " %s within it, but %s %s", OP_ARGS(op),
                  op->inner_succeeded ? "succeeded" : "did not succeed", op->inner_key,
                  before ? "exists" : "does not exist");
    if (op->succeeded && op->inner_succeeded != (op->inner_executed == op->header_revision))
        violation(OP_FORMAT " should %shave put %s", OP_ARGS(op), op->inner_succeeded ? "" : "not ",
                  op->inner_key);
    if (op->succeeded && !op->inner_succeeded && after)
        violation(OP_FORMAT " should have deleted %s", OP_ARGS(op), op->inner_key);
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
    if (*op->inner_key)
        check_inner(op);
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

/* At the revision of the answer, the owner's key is the oldest one. */
static void check_lock(const struct operation *op)
{
    const struct version *keys[RANGE_MAX], *first = NULL;
    if (op->answer != ANSWER_OK)
        return;
    size_t count = history_range(LOCK_PREFIX, LOCK_PREFIX_END, op->header_revision, keys);
    for (size_t i = 0; i < count; i++)
        if (!first || keys[i]->created < first->created)
            first = keys[i];
    if (!first || strcmp(first->key, op->key) != 0)
        violation(OP_FORMAT " has the lock at revision %lld, but its owner is %s", OP_ARGS(op),
                  (long long)op->header_revision, first ? first->key : "nobody");
}

void compare_answer(const struct operation *op)
{
    if (op->answer == ANSWER_OK && op->header_revision < op->floor)
        violation(OP_FORMAT " was answered at revision %lld, but %lld was seen before it began",
                  OP_ARGS(op), (long long)op->header_revision, (long long)op->floor);
    if (op->answer == ANSWER_OK && op->forbidden)
        violation(OP_FORMAT " needs a permission that its user does not have", OP_ARGS(op));
    if ((op->code == VIGIL_ERROR_PERMISSION_DENIED || op->code == VIGIL_ERROR_UNAUTHENTICATED) &&
        op->permitted)
        violation(OP_FORMAT " was denied (%s), but its user has the permission", OP_ARGS(op),
                  op->text);
    if (operation_met_damage(op) && !faults_have_rotted())
        violation(OP_FORMAT " has met damage (%s), but no bit has changed", OP_ARGS(op), op->text);
    if (op->kind == OPERATION_RANGE)
        check_range_answer(op);
}

void compare_with_history(const struct operation *op)
{
    if (op->answer == ANSWER_OK && op->header_revision > history_revision())
        violation(OP_FORMAT " was answered at revision %lld, but there are only %lld", OP_ARGS(op),
                  (long long)op->header_revision, (long long)history_revision());
    if (op->kind == OPERATION_RANGE)
        check_range(op);
    else if (op->kind == OPERATION_PUT)
        check_put(op);
    else if (op->kind == OPERATION_TXN)
        check_txn(op);
    else if (op->kind == OPERATION_DELETE)
        check_delete(op);
    else if (op->kind == OPERATION_LOCK)
        check_lock(op);
}
