#include "kube/policy/admission/plugins/plugin.h"

#include <stdarg.h>
#include <stdio.h>

/* A name that is still to be generated is shown by its beginning, and what is deleted with its
 * collection has none, as in Kubernetes. */
static struct slice name_of(const struct kube_admission_write *write)
{
    const struct json_node *metadata = write->operation == KUBE_ADMISSION_DELETE
                                           ? NULL
                                           : json_node_named(write->object, "metadata");
    struct slice name = write->name;
    if (!name.len &&
        json_node_text(json_node_named(metadata, "name"), write->arena, &name) != ST_OK)
        return SLICE_EMPTY;
    if (!name.len &&
        json_node_text(json_node_named(metadata, "generateName"), write->arena, &name) != ST_OK)
        return SLICE_EMPTY;
    return name.len ? name : SLICE_LITERAL("Unknown");
}

static bool forbid(const struct kube_admission_write *write, const char *why)
{
    return kube_fail_forbidden(write->status, slice_from_text(write->kind->group),
                               slice_from_text(write->kind->plural), name_of(write), why);
}

/* A reason that names many containers or resources is longer than a message. */
static bool forbid_long(const struct kube_admission_write *write, size_t len, const char *format,
                        va_list values)
{
    struct kube_status *status = write->status;
    forbid(write, "");
    size_t start = strlen(status->message);
    char *text = arena_alloc(write->arena, start + len + 1);
    if (!text)
        return kube_fail_engine(status, ST_NOMEM);
    memcpy(text, status->message, start);
    vsnprintf(text + start, len + 1, format, values);
    status->long_message = slice_of(text, start + len);
    return false;
}

bool kube_admission_forbid(const struct kube_admission_write *write, const char *format, ...)
{
    char why[KUBE_MESSAGE_BYTES / 2]; /* leaves room for the kind and the name */
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    int len = vsnprintf(why, sizeof(why), format, values);
    bool fits = len >= 0 && (size_t)len < sizeof(why);
    bool result =
        fits || len < 0 ? forbid(write, why) : forbid_long(write, (size_t)len, format, again);
    va_end(again);
    va_end(values);
    return result;
}

struct kube_meta kube_admission_meta(const struct kube_admission_write *write)
{
    return (struct kube_meta){
        .arena = write->arena,
        .kind = write->kind,
        .namespace = write->namespace,
        .name = write->name,
        .random = write->random,
        .status = write->status,
        .dry_run = write->dry_run,
    };
}
