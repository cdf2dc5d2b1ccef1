#include "cmd/ctl/admin/ask.h"

#include "base/clock.h"
#include "cmd/ctl/admin/admin.h"

#include <pthread.h>

void ask_call(struct asked *asked, enum client_method_id method, const void *request)
{
    int64_t begun_ns = clock_mono_ns(clock_system());
    vigil_call *call = client_request(asked->client, method, request);
    vigil_call_set_timeout(call, asked->ctl->globals.command_timeout_ns / NS_PER_MS);
    vigil_call_run(call);
    assert(asked->call_count < COUNT_OF(asked->calls));
    asked->calls[asked->call_count++] = call;
    asked->error = *vigil_call_error(call);
    asked->response = client_result(call, method);
    asked->took_ns = clock_mono_ns(clock_system()) - begun_ns;
}

static void *run(void *arg)
{
    struct asked *asked = arg;
    asked->ask(asked);
    return NULL;
}

/* Without a thread this one sends the question. */
static void ask_some(struct asked *items, size_t count)
{
    pthread_t threads[ASK_THREADS_MAX];
    bool started[ASK_THREADS_MAX] = {false};
    assert(count <= ASK_THREADS_MAX);
    for (size_t i = 0; i < count; i++)
        started[i] = pthread_create(&threads[i], NULL, run, &items[i]) == 0;
    for (size_t i = 0; i < count; i++) {
        if (started[i])
            pthread_join(threads[i], NULL);
        else
            run(&items[i]);
    }
}

static int make_items(struct ctl *ctl, const struct ctl_endpoints *endpoints,
                      void (*ask)(struct asked *asked), struct asked_list *ret_list)
{
    struct asked *items = NULL;
    if (endpoints->count)
        items = arena_calloc(ctl->arena, endpoints->count, sizeof(*items));
    if (endpoints->count && !items)
        return ctl_fail(ctl, CTL_ERROR, "out of memory");
    for (size_t i = 0; i < endpoints->count; i++) {
        int code = CTL_ERROR;
        items[i] = (struct asked){.ctl = ctl, .endpoint = endpoints->texts[i], .ask = ask};
        items[i].client = ctl_client_of(ctl, endpoints->texts[i], &code);
        if (!items[i].client)
            return code;
        *ret_list = (struct asked_list){.items = items, .count = i + 1};
    }
    return CTL_OK;
}

int ask_all(struct ctl *ctl, bool cluster, void (*ask)(struct asked *asked),
            struct asked_list *ret_list)
{
    struct ctl_endpoints endpoints = {0};
    int code = CTL_OK;
    if (cluster)
        code = ctl_member_endpoints(ctl, &endpoints);
    else
        endpoints = ctl_endpoints(ctl);
    if (code == CTL_OK)
        code = make_items(ctl, &endpoints, ask, ret_list);
    for (size_t i = 0; code == CTL_OK && i < ret_list->count; i += ASK_THREADS_MAX)
        ask_some(ret_list->items + i, size_min(ret_list->count - i, ASK_THREADS_MAX));
    return code;
}

void ask_free(struct asked_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        for (size_t n = 0; n < list->items[i].call_count; n++)
            vigil_call_free(list->items[i].calls[n]);
        vigil_client_free(list->items[i].client);
    }
    *list = (struct asked_list){0};
}

const char *ask_error_text(const struct asked *asked)
{
    return admin_error_text(asked->ctl, &asked->error);
}
