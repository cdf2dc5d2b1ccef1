#include "kube/types/field_errors.h"

#include <stdarg.h>
#include <stdio.h>

static bool keep(struct kube_field_errors *errors, struct kube_field_error *fault,
                 struct slice field, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int len = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *message = len >= 0 ? arena_alloc(errors->arena, (size_t)len + 1) : NULL;
    if (!fault || !message || arena_dup(errors->arena, field, &fault->field) != ST_OK)
        return false;
    vsnprintf(message, (size_t)len + 1, format, arguments);
    fault->message = slice_of(message, (size_t)len);
    return true;
}

void kube_field_errors_add(struct kube_field_errors *errors, const char *reason, struct slice field,
                           const char *format, ...)
{
    va_list arguments;
    if (errors->count >= KUBE_FIELD_ERRORS_MAX) /* a single call may have added several */
        return;
    struct kube_field_error *fault = arena_calloc(errors->arena, 1, sizeof(*fault));
    va_start(arguments, format);
    bool kept = keep(errors, fault, field, format, arguments);
    va_end(arguments);
    if (!kept) {
        errors->no_memory = true;
        return;
    }
    fault->reason = reason;
    if (errors->last)
        errors->last->next = fault;
    else
        errors->first = fault;
    errors->last = fault;
    errors->count++;
}

void kube_field_errors_join(struct kube_field_errors *errors,
                            const struct kube_field_errors *others)
{
    assert(errors->arena == others->arena);
    errors->no_memory |= others->no_memory;
    if (!others->first)
        return;
    if (errors->last)
        errors->last->next = others->first;
    else
        errors->first = others->first;
    errors->last = others->last;
    errors->count += others->count;
}

/* Whether an earlier error has the same text, which the message then does not repeat. */
static bool is_repeated(const struct kube_field_errors *errors,
                        const struct kube_field_error *fault)
{
    const struct kube_field_error *other = errors->first;
    while (other != fault && !(slice_equal(other->field, fault->field) &&
                               slice_equal(other->message, fault->message)))
        other = other->next;
    return other != fault;
}

static size_t count_distinct(const struct kube_field_errors *errors)
{
    size_t count = 0;
    for (const struct kube_field_error *fault = errors->first; fault; fault = fault->next)
        count += !is_repeated(errors, fault);
    return count;
}

static enum status append_all(const struct kube_status *status,
                              const struct kube_field_errors *errors, struct buf *to)
{
    size_t count = status->cause_count + count_distinct(errors), written = 0;
    TRY(buf_append_text(to, count > 1 ? "[" : ""));
    for (size_t i = 0; i < status->cause_count; i++) {
        const struct kube_cause *cause = &status->causes[i];
        TRY(buf_append_format(to, "%s%s%s%s", written++ ? ", " : "", cause->field,
                              cause->field[0] ? ": " : "", cause->message));
    }
    for (const struct kube_field_error *fault = errors->first; fault; fault = fault->next) {
        if (is_repeated(errors, fault))
            continue;
        TRY(buf_append_text(to, written++ ? ", " : ""));
        TRY(buf_append(to, fault->field));
        if (fault->field.len)
            TRY(buf_append_text(to, ": "));
        TRY(buf_append(to, fault->message));
    }
    return buf_append_text(to, count > 1 ? "]" : "");
}

bool kube_fail_field_errors(struct kube_status *status, const struct kube_field_errors *errors,
                            struct slice group, struct slice kind, struct slice name)
{
    AUTO(buf_fini) struct buf text = {0};
    struct slice message;
    if (errors->no_memory ||
        buf_append_format(&text, "%.*s%s%.*s \"%.*s\" is invalid: ", SLICE_ARGS(kind),
                          group.len ? "." : "", SLICE_ARGS(group), SLICE_ARGS(name)) != ST_OK ||
        append_all(status, errors, &text) != ST_OK ||
        arena_dup(errors->arena, buf_slice(&text), &message) != ST_OK)
        return kube_fail_engine(status, ST_NOMEM);
    status->reason = KUBE_INVALID;
    status->long_message = message;
    status->errors = errors->first;
    status->group = group;
    status->kind = kind;
    status->name = name;
    return false;
}
