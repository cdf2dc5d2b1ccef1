#include "mirror/follow/compactions.h"

#include "base/xalloc.h"
#include "client/call/client.h"
#include "mirror/follow/compact_search.h"

#include <vigil/kv.h>

struct compactions {
    struct compactions_options options;
    struct compact_search search;
    vigil_call *call; /* owned; NULL: it is not searching */
    struct timer next;
};

static void ask(struct compactions *compactions);

static struct loop *loop_of(const struct compactions *compactions)
{
    return compactions->options.client->driver.loop;
}

static void wait_for_next(struct compactions *compactions)
{
    loop_timer_set(loop_of(compactions), &compactions->next,
                   loop_now_ns(loop_of(compactions)) + compactions->options.every_ns);
}

static void on_next(struct timer *timer)
{
    struct compactions *compactions = CONTAINER_OF(timer, struct compactions, next);
    int64_t known;
    int64_t newest = compactions->options.newest(compactions->options.ctx, &known);
    compact_search_init(&compactions->search, known, newest < known ? known : newest);
    ask(compactions);
}

struct compactions *compactions_new(const struct compactions_options *options)
{
    struct compactions *compactions = xcalloc(1, sizeof(*compactions));
    compactions->options = *options;
    compactions->next.fn = on_next;
    return compactions;
}

void compactions_stop(struct compactions *compactions)
{
    loop_timer_cancel(loop_of(compactions), &compactions->next);
    vigil_call_free(TAKE(compactions->call));
}

void compactions_free(struct compactions *compactions)
{
    if (!compactions)
        return;
    compactions_stop(compactions);
    free(compactions);
}

void compactions_start(struct compactions *compactions)
{
    compactions_stop(compactions);
    on_next(&compactions->next);
}

/* A member that is behind may know neither the revision nor the compaction: then the search is
 * repeated later. */
static void on_answer(vigil_call *call, void *user)
{
    struct compactions *compactions = user;
    int code = vigil_call_error(call)->code;
    vigil_call_free(TAKE(compactions->call));
    if (code != VIGIL_OK && code != VIGIL_ERROR_COMPACTED) {
        wait_for_next(compactions);
        return;
    }
    compact_search_answer(&compactions->search, code == VIGIL_OK);
    ask(compactions);
}

static void ask(struct compactions *compactions)
{
    int64_t revision = compact_search_next(&compactions->search);
    if (revision == 0) {
        wait_for_next(compactions);
        compactions->options.found(compactions->options.ctx,
                                   compact_search_result(&compactions->search));
        return;
    }
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = vigil_bytes_of(compactions->options.key.ptr, compactions->options.key.len);
    request.revision = revision;
    request.serializable = request.count_only = 1;
    compactions->call = xalloc_check(vigil_range(compactions->options.client, &request), 1);
    int code = vigil_call_start(compactions->call, on_answer, compactions);
    assert(code == VIGIL_OK);
    (void)code;
}
