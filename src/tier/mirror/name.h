/* What a collection of the mirror is: a resource in one version, and the encoding in which its
 * objects arrive, are kept and are served. */
#ifndef VIGIL_TIER_MIRROR_NAME_H
#define VIGIL_TIER_MIRROR_NAME_H

#include "base/slice.h"

enum tier_encoding {
    TIER_JSON,
    TIER_PROTOBUF,
    TIER_METADATA_JSON, /* PartialObjectMetadata */
    TIER_METADATA_PROTOBUF,
    TIER_ENCODINGS,
};

static inline bool tier_encoding_is_protobuf(enum tier_encoding encoding)
{
    return encoding == TIER_PROTOBUF || encoding == TIER_METADATA_PROTOBUF;
}

static inline bool tier_encoding_is_metadata(enum tier_encoding encoding)
{
    return encoding == TIER_METADATA_JSON || encoding == TIER_METADATA_PROTOBUF;
}

struct tier_name {
    struct slice group, version, resource; /* "apps", "v1", "deployments"; the core group is "" */
    enum tier_encoding encoding;
};

enum { TIER_NAME_PART_BYTES_MAX = 253 }; /* each of the texts is at most so long */

#endif
