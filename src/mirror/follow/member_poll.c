#include "mirror/follow/member_poll.h"

#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "io/loop.h"
#include "io/socket.h"
#include "mirror/link/member_table.h"
#include "mirror/link/options.h"
#include "mirror/link/upstream.h"

#include <stdlib.h>

enum {
    ANSWER_BYTES = 1024,         /* memory for a decoded answer, at first … */
    ANSWER_BYTES_MAX = 64 << 10, /* … and at most */
};
#define EVERY_NS (3 * NS_PER_S)
#define ANSWER_WITHIN_NS (2 * NS_PER_S)

/* One endpoint. */
struct respondent {
    struct census *census;
    struct upstream *upstream;  /* owned; NULL: the endpoint cannot be used */
    struct upstream_call *call; /* NULL: no question is under way */
    bool answered;
};

struct census {
    struct loop *loop;
    struct roster *roster;
    struct respondent *all; /* owned; as many as the roster has */
    struct timer next;
};

static size_t place_of(const struct respondent *respondent)
{
    return (size_t)(respondent - respondent->census->all);
}

static void on_message(struct upstream_call *call, struct slice message)
{
    struct respondent *respondent = upstream_call_user(call);
    uint8_t first[ANSWER_BYTES];
    struct arena arena;
    struct pb_status_response response;
    arena_init(&arena, first, sizeof(first), ANSWER_BYTES_MAX);
    if (pb_decode(&pb_status_response_table, message, &arena, &response) == ST_OK) {
        respondent->answered = true;
        roster_note(respondent->census->roster, place_of(respondent), &response);
    }
    arena_fini(&arena);
}

static void on_end(struct upstream_call *call, enum grpc_code code, struct slice text)
{
    struct respondent *respondent = upstream_call_user(call);
    (void)code;
    (void)text;
    respondent->call = NULL;
    if (!respondent->answered)
        roster_note(respondent->census->roster, place_of(respondent), NULL);
}

static void ask(struct respondent *respondent)
{
    static const struct upstream_ops ops = {.on_message = on_message, .on_end = on_end};
    struct upstream_request request = {
        .path = SLICE_LITERAL(PB_MAINTENANCE_STATUS_PATH),
        .caller = {.is_self = true},
        .deadline_ns = loop_now_ns(respondent->census->loop) + ANSWER_WITHIN_NS,
        .receive_max = ANSWER_BYTES_MAX,
        .reads = true,
    };
    if (!respondent->upstream || respondent->call)
        return;
    respondent->answered = false;
    if (upstream_start(respondent->upstream, &request, &ops, respondent, &respondent->call) !=
            ST_OK ||
        upstream_send(respondent->call, SLICE_EMPTY) != ST_OK)
        abort(); /* without memory */
    upstream_half_close(respondent->call);
}

static void on_next(struct timer *timer)
{
    struct census *census = CONTAINER_OF(timer, struct census, next);
    for (size_t i = 0; i < census->roster->count; i++)
        ask(&census->all[i]);
    loop_timer_set(census->loop, timer, loop_now_ns(census->loop) + EVERY_NS);
}

struct census *census_new(struct loop *loop, const struct upstream_options *options,
                          struct roster *roster)
{
    struct census *census = xcalloc(1, sizeof(*census));
    census->loop = loop;
    census->roster = roster;
    census->all = xcalloc(roster->count + 1, sizeof(*census->all));
    census->next.fn = on_next;
    for (size_t i = 0; i < roster->count; i++) {
        struct error error; /* wrong options were found when the engine was opened */
        struct upstream_options alone = *options;
        alone.endpoints = roster->rows[i].endpoint; /* constant */
        census->all[i].census = census;
        if (upstream_new(loop, network_posix(), &alone, &census->all[i].upstream, &error) != ST_OK)
            census->all[i].upstream = NULL;
    }
    on_next(&census->next);
    return census;
}

void census_free(struct census *census)
{
    if (!census)
        return;
    loop_timer_cancel(census->loop, &census->next);
    for (size_t i = 0; i < census->roster->count; i++)
        upstream_free(census->all[i].upstream);
    free(census->all);
    free(census);
}
