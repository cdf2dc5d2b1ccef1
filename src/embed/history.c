#include "embed/history.h"

#include "base/xalloc.h"
#include "client/driver/driver.h"

struct embed_history {
    pthread_t thread; /* runs the loop until it is stopped */
    bool started;
    struct loop *loop;
    struct engine_shard *shard;
    struct etcd_compactor *compactor;
};

static void after_input(void *ctx)
{
    struct embed_history *history = ctx;
    engine_shard_turn_begin(history->shard);
}

static bool end_of_turn(void *ctx)
{
    struct embed_history *history = ctx;
    engine_shard_turn_end(history->shard);
    engine_shard_flushed(history->shard);
    return false;
}

static void *run(void *arg)
{
    struct embed_history *history = arg;
    loop_run(history->loop);
    engine_shard_stop(history->shard);
    etcd_compactor_stop(history->compactor);
    while (etcd_compactor_busy(history->compactor))
        loop_turn(history->loop, 10 * NS_PER_MS);
    return NULL;
}

static enum status start(struct embed_history *history, struct engine *engine,
                         const struct etcd_compactor_options *options)
{
    TRY(loop_new(clock_system(), &history->loop));
    TRY(engine_shard_new(engine, history->loop, &history->shard));
    loop_set_hooks(history->loop, (struct loop_hooks){.after_input = after_input,
                                                      .end_of_turn = end_of_turn,
                                                      .ctx = history});
    history->compactor = etcd_compactor_new(options, history->shard, history->loop);
    TRY(driver_thread_new(run, history, &history->thread));
    history->started = true;
    return ST_OK;
}

enum status embed_history_new(struct engine *engine, const struct etcd_compactor_options *options,
                              struct embed_history **ret_history)
{
    struct embed_history *history = xcalloc(1, sizeof(*history));
    enum status status = start(history, engine, options);
    if (status == ST_OK)
        *ret_history = history;
    else
        embed_history_free(history);
    return status;
}

void embed_history_free(struct embed_history *history)
{
    if (!history)
        return;
    if (history->started) {
        loop_stop(history->loop);
        pthread_join(history->thread, NULL);
    }
    etcd_compactor_free(history->compactor);
    if (history->shard)
        engine_shard_free(history->shard);
    loop_free(history->loop);
    free(history);
}
