/* The version of libvigil and libvigil-kube; the files of both have it in their names
 * (cmake/library.cmake). */
#ifndef VIGIL_CLIENT_CALL_VERSION_H
#define VIGIL_CLIENT_CALL_VERSION_H

#define LIBRARY_VERSION "1.0.0"

#endif
