/*
 * GET and list of componentstatuses, which are made for each request. The controller
 * manager and the scheduler appear as kube-apiserver shows those that do not run. The store answers
 * its own requests, so it is healthy.
 */
#include "kube/call/call.h"
#include "kube/call/respond.h"
#include "kube/call/shape.h"
#include "kube/handlers/read/read.h"
#include "kube/handlers/read/scope.h"
#include "kube/types/object/object.h"

#include <stdio.h>

enum { COMPONENT_BYTES = 384 };

static const struct {
    const char *name;
    unsigned port; /* 0: it is healthy */
} components[] = {{"controller-manager", 10257}, {"etcd-0", 0}, {"scheduler", 10259}};

static const char head[] = "\"kind\":\"ComponentStatus\",\"apiVersion\":\"v1\",";

/* Without its kind if it is an item of a list. */
static struct slice write_component(size_t i, bool item, char text[COMPONENT_BYTES])
{
    char message[160] = "ok";
    unsigned port = components[i].port;
    if (port)
        snprintf(message, sizeof(message),
                 "Get \\\"https://127.0.0.1:%u/healthz\\\": dial tcp 127.0.0.1:%u: connect: "
                 "connection refused",
                 port, port);
    snprintf(text, COMPONENT_BYTES,
             "{%s\"metadata\":{\"name\":\"%s\"},\"conditions\":[{\"type\":\"Healthy\",\"status\":"
             "\"%s\",\"message\":\"%s\"}]}",
             item ? "" : head, components[i].name, port ? "False" : "True", message);
    return slice_from_text(text);
}

static enum status write_item(const struct kube_shaping *shaping, size_t i, struct buf *to)
{
    char text[COMPONENT_BYTES];
    struct kube_object object;
    if (shaping->shape == KUBE_WHOLE)
        return buf_append(to, write_component(i, true, text));
    TRY(kube_object_parse(write_component(i, false, text), &object));
    return kube_shape_item(shaping, &object, 0, to);
}

/* Writes the items for which there is a bit. A Table of one object is a list of one. */
static enum status write_list(const struct kube_call *call, unsigned shown, struct buf *to)
{
    struct kube_shaping shaping = kube_shaping_of(call);
    bool first = true;
    TRY(buf_append_text(to, "{"));
    TRY(kube_shape_list_head(&shaping, to));
    TRY(buf_append_text(to, "\"metadata\":{},"));
    TRY(kube_shape_list_items(&shaping, to));
    for (size_t i = 0; i < COUNT_OF(components); i++) {
        if (!(shown & 1u << i))
            continue;
        TRY(buf_append_text(to, first ? "" : ","));
        TRY(write_item(&shaping, i, to));
        first = false;
    }
    return buf_append_text(to, "]}");
}

static enum status write_one(const struct kube_call *call, size_t i, struct buf *to)
{
    struct kube_shaping shaping = kube_shaping_of(call);
    char text[COMPONENT_BYTES];
    struct kube_object object;
    if (shaping.shape == KUBE_TABLE)
        return write_list(call, 1u << i, to);
    struct slice json = write_component(i, false, text);
    if (shaping.shape == KUBE_WHOLE)
        return buf_append(to, json);
    TRY(kube_object_parse(json, &object));
    return kube_shape_single(&shaping, &object, 0, true, to);
}

/* They have no labels, and of fields their name. */
static bool choose(struct kube_call *call, unsigned *ret_shown)
{
    AUTO(kube_selection_unrefp) struct kube_selection *selection = NULL;
    char text[COMPONENT_BYTES];
    if (!kube_selectors_get(call, &selection))
        return false;
    *ret_shown = 0;
    for (size_t i = 0; i < COUNT_OF(components); i++) {
        struct kube_object object;
        if (kube_object_parse(write_component(i, false, text), &object) != ST_OK)
            return kube_fail_stored(&call->status);
        *ret_shown |= (unsigned)kube_selection_matches(selection, &object) << i;
    }
    return true;
}

static bool make(struct kube_call *call, struct buf *to)
{
    bool list = !call->path.name.len;
    unsigned shown = 0;
    size_t i = 0;
    while (i < COUNT_OF(components) && !slice_is(call->path.name, components[i].name))
        i++;
    if (!list && i == COUNT_OF(components))
        return kube_fail_not_found(&call->status, SLICE_EMPTY, SLICE_LITERAL("componentstatus"),
                                   call->path.name);
    if (!kube_shape_fits(call, list) || (list && !choose(call, &shown)))
        return false;
    enum status status = list ? write_list(call, shown, to) : write_one(call, i, to);
    return status == ST_OK || kube_fail_engine(&call->status, status);
}

void kube_components(struct kube_call *call)
{
    AUTO(buf_fini) struct buf text = {0};
    if (make(call, &text))
        kube_call_respond(call, 200, buf_slice(&text));
    else
        kube_call_fail(call);
}
