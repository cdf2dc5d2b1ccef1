#include "net/tls/source.h"

#include "base/lock.h"

#include <stdlib.h>

struct tls_source {
    struct tls_recipe recipe;
    struct tls_source_hooks hooks;

    struct lock lock;            /* protects the fields below */
    struct tls_context *context; /* owned; never NULL after tls_source_new */
    struct tls_files_mark mark;  /* mark of the files as they were last read, also if that failed */
    bool fresh; /* the files may have changed without a change of the mark: read them again */
    uint8_t digest[TLS_DIGEST_BYTES]; /* digest of what was last read */
    struct error failure;             /* the last one that was reported */
    uint64_t reloads, failures;
};

static enum status load(struct tls_source *s, struct error *error)
{
    struct tls_files files;
    struct tls_context *context;
    TRY(tls_files_read(&s->recipe.paths, &files, error));
    bool known = s->context && memcmp(s->digest, files.digest, sizeof(s->digest)) == 0;
    memcpy(s->digest, files.digest, sizeof(s->digest));
    enum status status =
        known ? ST_EXISTS : s->recipe.make(s->recipe.options, &files, &context, error);
    tls_files_fini(&files);
    TRY(status);
    tls_context_unref(s->context);
    s->context = context;
    return ST_OK;
}

/* The mark is taken before reading, so that a change meanwhile is noticed the next time. */
static void look(struct tls_source *s)
{
    assert(lock_held(&s->lock));
    struct tls_files_mark mark;
    struct error error;
    tls_files_look(&s->recipe.paths, &mark);
    if (tls_files_same(&mark, &s->mark) && !s->fresh)
        return;
    s->mark = mark;
    s->fresh = tls_files_fresh(&mark);
    enum status status = load(s, &error);
    if (status == ST_EXISTS)
        return; /* the files were written again with the same content */
    if (status == ST_OK) {
        s->failure.text[0] = 0;
        s->reloads++;
        if (s->hooks.on_reload)
            s->hooks.on_reload(s->hooks.ctx);
    } else if (strcmp(s->failure.text, error.text) != 0) {
        /* The files cannot be used, and the previous ones stay in use. A failure is reported again
         * only when its reason changes. */
        s->failure = error;
        s->failures++;
        if (s->hooks.on_failure)
            s->hooks.on_failure(s->hooks.ctx, error.text);
    }
}

enum status tls_source_new(const struct tls_recipe *recipe, struct tls_source_hooks hooks,
                           struct tls_source **ret_source, struct error *error)
{
    AUTO(tls_source_freep) struct tls_source *s = calloc(1, sizeof(*s));
    if (!s)
        return error_no_memory(error);
    s->recipe = *recipe;
    s->hooks = hooks;
    lock_init(&s->lock);
    tls_files_look(&recipe->paths, &s->mark);
    s->fresh = tls_files_fresh(&s->mark);
    TRY(load(s, error));
    *ret_source = TAKE(s);
    return ST_OK;
}

void tls_source_free(struct tls_source *s)
{
    if (!s)
        return;
    tls_context_unref(s->context);
    lock_fini(&s->lock);
    free(s);
}

struct tls_context *tls_source_get(struct tls_source *s)
{
    LOCK_SCOPE(&s->lock);
    look(s);
    return tls_context_ref(s->context);
}

struct tls_stats tls_source_stats(struct tls_source *s)
{
    LOCK_SCOPE(&s->lock);
    return (struct tls_stats){.reloads = s->reloads,
                              .reload_failures = s->failures,
                              .expires_s = tls_context_expiry(s->context)};
}
