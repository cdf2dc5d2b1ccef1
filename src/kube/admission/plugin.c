#include "kube/admission/plugin.h"

#include <stdarg.h>
#include <stdio.h>

/* A name that is still to be generated is shown by its beginning. */
static struct slice name_of(const struct kube_admission_write *write)
{
    const struct json_node *metadata = json_node_named(write->object, "metadata");
    struct slice name = write->name;
    if (!name.len &&
        json_node_text(json_node_named(metadata, "name"), write->arena, &name) != ST_OK)
        return SLICE_EMPTY;
    if (!name.len &&
        json_node_text(json_node_named(metadata, "generateName"), write->arena, &name) != ST_OK)
        return SLICE_EMPTY;
    return name.len ? name : SLICE_LITERAL("Unknown");
}

bool kube_admission_forbid(const struct kube_admission_write *write, const char *format, ...)
{
    char why[KUBE_MESSAGE_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(why, sizeof(why), format, values);
    va_end(values);
    return kube_fail_forbidden(write->status, slice_from_text(write->kind->group),
                               slice_from_text(write->kind->plural), name_of(write), why);
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

bool kube_admission_is(const struct kube_kind *kind, const char *group, const char *plural)
{
    return strcmp(kind->plural, plural) == 0 && strcmp(kind->group, group) == 0 &&
           !(kind->flags & KUBE_CUSTOM);
}
