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
    struct member_poll *poll;
    struct upstream *upstream;  /* owned; NULL: the endpoint cannot be used */
    struct upstream_call *call; /* NULL: no question is under way */
    bool answered;
};

struct member_poll {
    struct loop *loop;
    struct member_table *member_table;
    struct respondent *all; /* owned; as many as the member table has */
    struct timer next;
};

static size_t place_of(const struct respondent *respondent)
{
    return (size_t)(respondent - respondent->poll->all);
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
        member_table_note(respondent->poll->member_table, place_of(respondent), &response);
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
        member_table_note(respondent->poll->member_table, place_of(respondent), NULL);
}

static void ask(struct respondent *respondent)
{
    static const struct upstream_ops ops = {.on_message = on_message, .on_end = on_end};
    struct upstream_request request = {
        .path = SLICE_LITERAL(PB_MAINTENANCE_STATUS_PATH),
        .caller = {.is_self = true},
        .deadline_ns = loop_now_ns(respondent->poll->loop) + ANSWER_WITHIN_NS,
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
    struct member_poll *poll = CONTAINER_OF(timer, struct member_poll, next);
    for (size_t i = 0; i < poll->member_table->count; i++)
        ask(&poll->all[i]);
    loop_timer_set(poll->loop, timer, loop_now_ns(poll->loop) + EVERY_NS);
}

struct member_poll *member_poll_new(struct loop *loop, const struct upstream_options *options,
                                    struct member_table *member_table)
{
    struct member_poll *poll = xcalloc(1, sizeof(*poll));
    poll->loop = loop;
    poll->member_table = member_table;
    poll->all = xcalloc(member_table->count + 1, sizeof(*poll->all));
    poll->next.fn = on_next;
    for (size_t i = 0; i < member_table->count; i++) {
        struct error error; /* wrong options were found when the engine was opened */
        struct upstream_options alone = *options;
        alone.endpoints = member_table->rows[i].endpoint; /* constant */
        poll->all[i].poll = poll;
        if (upstream_new(loop, network_posix(), &alone, &poll->all[i].upstream, &error) != ST_OK)
            poll->all[i].upstream = NULL;
    }
    on_next(&poll->next);
    return poll;
}

void member_poll_free(struct member_poll *poll)
{
    if (!poll)
        return;
    loop_timer_cancel(poll->loop, &poll->next);
    for (size_t i = 0; i < poll->member_table->count; i++)
        upstream_free(poll->all[i].upstream);
    free(poll->all);
    free(poll);
}
