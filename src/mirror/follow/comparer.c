#include "mirror/follow/comparer.h"

#include "base/xalloc.h"
#include "client/call/client.h"
#include "mirror/answer/possible.h"
#include "mirror/link/loop_guard.h"

#include <inttypes.h>
#include <stdio.h>
#include <vigil/kv.h>
#include <vigil/maintenance.h>

struct comparer {
    vigil_client *client;
    void (*done)(void *ctx, const struct comparer_result *result);
    void *ctx;
    struct comparer_question question;
    vigil_call *call; /* owned; NULL: idle */
    /* Kind of the question: enum history_check_kind; HISTORY_CHECK_KINDS: none, only the header. */
    unsigned kind;
    bool answered; /* the header is valid */
    struct comparer_result result;
};

struct comparer *comparer_new(vigil_client *client,
                              void (*done)(void *ctx, const struct comparer_result *result),
                              void *ctx)
{
    struct comparer *comparer = xcalloc(1, sizeof(*comparer));
    comparer->client = client;
    comparer->done = done;
    comparer->ctx = ctx;
    return comparer;
}

void comparer_cancel(struct comparer *comparer)
{
    vigil_call_free(comparer->call);
    comparer->call = NULL;
}

void comparer_free(struct comparer *comparer)
{
    if (!comparer)
        return;
    comparer_cancel(comparer);
    free(comparer);
}

/* -- The verdict -- */

static void conclude(struct comparer *comparer, enum comparer_verdict verdict, const char *reason)
{
    comparer_cancel(comparer);
    comparer->result.verdict = verdict;
    snprintf(comparer->result.reason, sizeof(comparer->result.reason), "%s", reason);
    comparer->done(comparer->ctx, &comparer->result);
}

/* NULL: the header is of the same past. */
static const char *fault_of(const struct comparer *comparer, const vigil_header *header)
{
    const struct comparer_question *question = &comparer->question;
    if (question->cluster_id && header->cluster_id != question->cluster_id)
        return "the cluster has another id";
    if (header->revision < question->mirrored)
        return "the cluster's revision has gone back";
    if (header->raft_term < question->raft_term)
        return "the cluster's raft term has gone back";
    return NULL;
}

static void ask(struct comparer *comparer);

static void on_answer(struct comparer *comparer, const vigil_range_response *answer)
{
    const char *fault = fault_of(comparer, answer->header);
    const vigil_kv *kv = answer->kv_count ? answer->kvs : NULL;
    if (!possible_revision(answer->header->revision)) {
        conclude(comparer, COMPARER_FAILED, "an answer has an impossible revision");
        return;
    }
    comparer->result.header = *answer->header;
    comparer->answered = true;
    if (!fault && comparer->kind < HISTORY_CHECK_KINDS &&
        !history_check_agrees(comparer->question.history_check, comparer->kind, kv))
        fault = "the last change in the mirror is not the cluster's at that revision";
    if (fault) {
        conclude(comparer, COMPARER_OTHER, fault);
        return;
    }
    comparer->kind++;
    ask(comparer);
}

static void on_range(vigil_call *call, void *user)
{
    struct comparer *comparer = user;
    const vigil_error *error = vigil_call_error(call);
    const vigil_range_response *answer = vigil_range_result(call);
    if (answer && answer->header) {
        on_answer(comparer, answer);
    } else if (error->code == VIGIL_ERROR_FUTURE_REVISION) {
        conclude(comparer, COMPARER_OTHER, "the cluster's revision has gone back");
    } else if (error->code == VIGIL_ERROR_COMPACTED) {
        /* There is nothing to compare with, so it proves nothing. */
        comparer->kind++;
        ask(comparer);
    } else {
        char text[VIGIL_ERROR_TEXT_BYTES];
        memcpy(text, error->text, sizeof(text));
        conclude(comparer, COMPARER_FAILED, answer ? "an answer has no header" : text);
    }
}

/* -- Questions -- */

static void start(struct comparer *comparer, vigil_call *call, vigil_done done)
{
    vigil_call_free(comparer->call);
    comparer->call = xalloc_check(call, 1);
    int code = vigil_call_start(call, done, comparer);
    assert(code == VIGIL_OK);
    (void)code;
}

/* The member has answered a linearizable read before, so its log is not behind the others'. */
static void on_last_status(vigil_call *call, void *user)
{
    struct comparer *comparer = user;
    const vigil_status_response *status = vigil_status_result(call);
    struct loop *loop = comparer->client->driver.loop;
    bool is_same =
        status && raft_mark_is_same_log(comparer->question.raft, raft_mark_of(status, loop));
    conclude(comparer, is_same ? COMPARER_SAME : COMPARER_UNPROVEN, "");
}

static void ask(struct comparer *comparer)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    struct slice key = comparer->question.key;
    int64_t revision = 0;
    while (
        comparer->kind < HISTORY_CHECK_KINDS &&
        !history_check_question(comparer->question.history_check, comparer->kind, &key, &revision))
        comparer->kind++;
    if (comparer->kind >= HISTORY_CHECK_KINDS && comparer->answered) {
        if (comparer->question.is_proven)
            conclude(comparer, COMPARER_SAME, "");
        else
            start(comparer, vigil_status(comparer->client), on_last_status);
        return;
    }
    request.key = vigil_bytes_of(key.ptr, key.len);
    request.revision = revision;
    request.limit = 1;
    request.keys_only = comparer->kind != HISTORY_CHECK_PUT;
    start(comparer, vigil_range(comparer->client, &request), on_range);
}

/* A server that does not say its version is treated as an old one, but the question comes back if
 * the way leads to this server itself. */
static void on_status(vigil_call *call, void *user)
{
    struct comparer *comparer = user;
    const vigil_status_response *status = vigil_status_result(call);
    if (!status && strstr(vigil_call_error(call)->text, LOOP_GUARD_LOOP_TEXT)) {
        conclude(comparer, COMPARER_FAILED, LOOP_GUARD_LOOP_TEXT);
        return;
    }
    if (status)
        snprintf(comparer->result.version, sizeof(comparer->result.version), "%.*s",
                 VIGIL_ARGS(status->version));
    ask(comparer);
}

void comparer_start(struct comparer *comparer, const struct comparer_question *question)
{
    assert(!comparer->call);
    comparer->question = *question;
    comparer->kind = 0;
    comparer->answered = false;
    comparer->result = (struct comparer_result){0};
    start(comparer, vigil_status(comparer->client), on_status);
}
