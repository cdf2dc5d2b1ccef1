#include "server/empty_mirror.h"

#include "base/xalloc.h"
#include "mirror/directory/directory.h"

struct empty_mirror {
    struct mirror_options options;
    struct mirror_directory directory;
};

enum status empty_mirror_open(const struct engine_local_options *options,
                              struct empty_mirror **ret_mirror, struct error *error)
{
    struct empty_mirror *mirror = xcalloc(1, sizeof(*mirror));
    mirror->options.mirror = *options;
    /* The directory may have the mirror of an etcd cluster, which the open alone would use. */
    enum status status = mirror_directory_discard(&mirror->options, 0, error);
    if (status == ST_OK)
        status = mirror_directory_open(&mirror->options, &mirror->directory, error);
    if (status == ST_OK)
        *ret_mirror = mirror;
    else
        free(mirror);
    return status;
}

struct engine *empty_mirror_engine(struct empty_mirror *mirror)
{
    return mirror->directory.engine;
}

void empty_mirror_close(struct empty_mirror *mirror)
{
    if (!mirror)
        return;
    mirror_directory_abandon(&mirror->directory, &mirror->options);
    free(mirror);
}
