/* URLs: url("https://example.com/a?b=c").getHost() and others. */
#ifndef VIGIL_CEL_LIBRARY_URL_H
#define VIGIL_CEL_LIBRARY_URL_H

#include "cel/library/library.h"

extern const struct cel_library cel_urls;

#endif
