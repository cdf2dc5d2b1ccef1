#include "client/connect/connector.h"

#include <stdlib.h>

#define IDLE_NS (1 * NS_PER_S)

static void free_buffers(struct connector *c)
{
    free(c->raw);
    free(c->plain);
    free(c->middle);
    c->raw = c->plain = c->middle = NULL;
}

static void on_idle(struct timer *timer)
{
    struct connector *c = CONTAINER_OF(timer, struct connector, idle);
    if (!c->used) {
        free_buffers(c);
        return;
    }
    c->used = false;
    loop_timer_set(c->options.loop, timer, clock_add(loop_now_ns(c->options.loop), IDLE_NS));
}

void connector_init(struct connector *c, const struct connector_options *options)
{
    *c = (struct connector){.options = *options, .idle.fn = on_idle};
}

void connector_fini(struct connector *c)
{
    assert(c->connections == 0);
    if (c->options.loop)
        loop_timer_cancel(c->options.loop, &c->idle);
    free_buffers(c);
}

static uint8_t *get(struct connector *c, uint8_t **buffer)
{
    c->used = true;
    if (!*buffer)
        *buffer = malloc(CONNECTOR_BUFFER_BYTES);
    if (*buffer && !c->idle.set)
        loop_timer_set(c->options.loop, &c->idle, clock_add(loop_now_ns(c->options.loop), IDLE_NS));
    return *buffer;
}

uint8_t *connector_raw(struct connector *c)
{
    return get(c, &c->raw);
}

uint8_t *connector_plain(struct connector *c)
{
    return get(c, &c->plain);
}

uint8_t *connector_middle(struct connector *c)
{
    return get(c, &c->middle);
}
