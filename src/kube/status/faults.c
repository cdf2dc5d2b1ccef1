#include "kube/status/faults.h"

#include <stdarg.h>
#include <stdio.h>

static bool keep(struct kube_faults *faults, struct kube_fault *fault, struct slice field,
                 const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int len = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *message = len >= 0 ? arena_alloc(faults->arena, (size_t)len + 1) : NULL;
    if (!fault || !message || arena_dup(faults->arena, field, &fault->field) != ST_OK)
        return false;
    vsnprintf(message, (size_t)len + 1, format, arguments);
    fault->message = slice_of(message, (size_t)len);
    return true;
}

void kube_faults_add(struct kube_faults *faults, const char *reason, struct slice field,
                     const char *format, ...)
{
    va_list arguments;
    if (faults->count >= KUBE_FAULTS_MAX) /* several may have come at once */
        return;
    struct kube_fault *fault = arena_calloc(faults->arena, 1, sizeof(*fault));
    va_start(arguments, format);
    bool kept = keep(faults, fault, field, format, arguments);
    va_end(arguments);
    if (!kept) {
        faults->no_memory = true;
        return;
    }
    fault->reason = reason;
    if (faults->last)
        faults->last->next = fault;
    else
        faults->first = fault;
    faults->last = fault;
    faults->count++;
}

static enum status append_text(const struct kube_fault *fault, struct buf *to)
{
    TRY(buf_append(to, fault->field));
    if (fault->field.len)
        TRY(buf_append_text(to, ": "));
    return buf_append(to, fault->message);
}

static enum status append_all(const struct kube_status *status, const struct kube_faults *faults,
                              struct buf *to)
{
    size_t count = status->cause_count + faults->count, told = 0;
    TRY(buf_append_text(to, count > 1 ? "[" : ""));
    for (size_t i = 0; i < status->cause_count; i++) {
        const struct kube_cause *cause = &status->causes[i];
        TRY(buf_append_format(to, "%s%s%s%s", told++ ? ", " : "", cause->field,
                              cause->field[0] ? ": " : "", cause->message));
    }
    for (const struct kube_fault *fault = faults->first; fault; fault = fault->next) {
        TRY(buf_append_text(to, told++ ? ", " : ""));
        TRY(append_text(fault, to));
    }
    return buf_append_text(to, count > 1 ? "]" : "");
}

bool kube_fail_faults(struct kube_status *status, const struct kube_faults *faults,
                      struct slice group, struct slice kind, struct slice name)
{
    AUTO(buf_fini) struct buf text = {0};
    struct slice message;
    if (faults->no_memory ||
        buf_append_format(&text, "%.*s%s%.*s \"%.*s\" is invalid: ", SLICE_ARGS(kind),
                          group.len ? "." : "", SLICE_ARGS(group), SLICE_ARGS(name)) != ST_OK ||
        append_all(status, faults, &text) != ST_OK ||
        arena_dup(faults->arena, buf_slice(&text), &message) != ST_OK)
        return kube_fail_engine(status, ST_NOMEM);
    status->reason = KUBE_INVALID;
    status->long_message = message;
    status->faults = faults->first;
    status->group = group;
    status->kind = kind;
    status->name = name;
    return false;
}
