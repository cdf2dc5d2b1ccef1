#include "auth/check.h"

static MUST_CHECK
enum status may(const struct auth_asker *asker, enum auth_access access, struct slice key,
                struct slice range_end)
{
    return auth_rights_check(asker->rights, &asker->principal, access, key, range_end);
}

enum status auth_check_range(const struct auth_asker *asker, const struct pb_range_request *request)
{
    return may(asker, AUTH_READ, request->key, request->range_end);
}

/* -- Leases -- */

struct lease_question {
    const struct auth_asker *asker;
    enum auth_access access;
};

static enum status lease_key(void *ctx, struct slice key)
{
    const struct lease_question *question = ctx;
    return may(question->asker, question->access, key, SLICE_EMPTY);
}

static MUST_CHECK
enum status check_lease(const struct auth_asker *asker, int64_t lease, enum auth_access access)
{
    struct lease_question question = {.asker = asker, .access = access};
    if (auth_rights_check_admin(asker->rights, &asker->principal) == ST_OK)
        return ST_OK;
    TRY(auth_rights_check_user(asker->rights, &asker->principal));
    if (may(asker, access, slice_of("", 1), slice_of("", 1)) == ST_OK)
        return ST_OK; /* the user has this access to all keys */
    uint64_t whose = auth_rights_number(asker->rights, &asker->principal, access);
    return asker->leases.each_key(asker->leases.ctx, lease, whose, lease_key, &question);
}

/* No lease has the id 0; in a request it means "no lease". */
static MUST_CHECK
enum status check_one_lease(const struct auth_asker *asker, int64_t lease, enum auth_access access)
{
    if (lease == AUTH_ALL_LEASES)
        return auth_rights_check_user(asker->rights, &asker->principal);
    return check_lease(asker, lease, access);
}

enum status auth_check_lease_write(const struct auth_asker *asker, int64_t lease)
{
    return check_one_lease(asker, lease, AUTH_WRITE);
}

enum status auth_check_lease_read(const struct auth_asker *asker, int64_t lease)
{
    return check_one_lease(asker, lease, AUTH_READ);
}

enum status auth_check_leases_read(const struct auth_asker *asker)
{
    return check_lease(asker, AUTH_ALL_LEASES, AUTH_READ);
}

/* -- Writes -- */

/*
 * Attaching a key to a lease needs the right to write all keys attached to it: otherwise the key
 * could be deleted with a lease that the writer of the key cannot revoke.
 */
enum status auth_check_put(const struct auth_asker *asker, const struct pb_put_request *request)
{
    TRY(may(asker, AUTH_WRITE, request->key, SLICE_EMPTY));
    if (request->lease)
        TRY(auth_check_lease_write(asker, request->lease));
    return request->prev_kv ? may(asker, AUTH_READ, request->key, SLICE_EMPTY) : ST_OK;
}

enum status auth_check_delete_range(const struct auth_asker *asker,
                                    const struct pb_delete_range_request *request)
{
    TRY(may(asker, AUTH_WRITE, request->key, request->range_end));
    return request->prev_kv ? may(asker, AUTH_READ, request->key, request->range_end) : ST_OK;
}

static MUST_CHECK
enum status check_op(const struct auth_asker *asker, const struct pb_request_op *op)
{
    switch (op->request_case) {
    case PB_REQUEST_OP_REQUEST_RANGE:
        return auth_check_range(asker, op->request_range);
    case PB_REQUEST_OP_REQUEST_PUT:
        return auth_check_put(asker, op->request_put);
    case PB_REQUEST_OP_REQUEST_DELETE_RANGE:
        return auth_check_delete_range(asker, op->request_delete_range);
    case PB_REQUEST_OP_REQUEST_TXN:
        return auth_check_txn(asker, op->request_txn);
    case PB_REQUEST_OP_REQUEST_NONE:
        break;
    }
    /* Unknown; the API has refused it already. */
    return auth_rights_check_admin(asker->rights, &asker->principal);
}

/* A transaction without any key still needs a user with current credentials. */
static MUST_CHECK
enum status check_somebody(const struct auth_asker *asker)
{
    const struct auth_principal *principal = &asker->principal;
    if (!auth_rights_unchecked(asker->rights, principal) && principal->revision &&
        principal->revision < auth_rights_revision(asker->rights))
        return ST_AUTH_OLD_REVISION;
    return auth_rights_check_user(asker->rights, principal);
}

/* Recursion is limited by the decoder (PB_DEPTH_MAX). */
enum status auth_check_txn(const struct auth_asker *asker, const struct pb_txn_request *request)
{
    for (size_t i = 0; i < request->compare_count; i++)
        TRY(may(asker, AUTH_READ, request->compare[i].key, request->compare[i].range_end));
    for (size_t i = 0; i < request->success_count; i++)
        TRY(check_op(asker, &request->success[i]));
    for (size_t i = 0; i < request->failure_count; i++)
        TRY(check_op(asker, &request->failure[i]));
    return check_somebody(asker);
}

/* The end is checked as the client sent it: after "\0" is normalised to "no end", the range would
 * look like a single key. */
enum status auth_check_watch(const struct auth_asker *asker,
                             const struct pb_watch_create_request *request)
{
    struct slice first = slice_of("", 1);
    return may(asker, AUTH_READ, request->key.len ? request->key : first, request->range_end);
}
