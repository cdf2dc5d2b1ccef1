#include "store/load.h"

/*
 * Versions come in the order of revisions, keys from all over. Each goes into the index as it was
 * put once: sorting them all by key first took no less time, and many times the memory.
 */
static enum status take_version(void *ctx, const struct backend_version *version)
{
    struct index *index = ctx;
    bool tombstone = version->create_revision == 0;
    index_put(index, version->key,
              &(struct index_version){
                  .mod_revision = version->id.revision,
                  .create_revision = version->create_revision,
                  .version = version->version,
                  .lease = version->lease,
                  .loc = version->loc,
                  .field_bytes = tombstone ? 0 : version->field_bytes,
                  .sub_revision = version->id.sub,
              });
    return ST_OK;
}

enum status store_load_index(struct backend *backend, struct index *index)
{
    index_load_begin(index);
    enum status status =
        backend_versions_scan(backend, (struct backend_version_id){0}, take_version, index);
    index_load_end(index);
    return status;
}
