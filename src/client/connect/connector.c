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
    /* A client that has nothing to do gives its buffers back; the next use makes new ones. */
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

uint8_t *connector_buffer(struct connector *c, uint8_t **buffer)
{
    assert(buffer == &c->raw || buffer == &c->plain || buffer == &c->middle);
    c->used = true;
    if (!*buffer)
        *buffer = malloc(CONNECTOR_BUFFER_BYTES);
    if (*buffer && !c->idle.set)
        loop_timer_set(c->options.loop, &c->idle, clock_add(loop_now_ns(c->options.loop), IDLE_NS));
    return *buffer;
}
