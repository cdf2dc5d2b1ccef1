/* Semantic versions: semver("1.2.3-rc.1").isLessThan(semver("1.2.3")) and others. */
#ifndef VIGIL_CEL_LIBRARY_VERSION_H
#define VIGIL_CEL_LIBRARY_VERSION_H

#include "cel/library/library.h"

extern const struct cel_library cel_versions;

#endif
