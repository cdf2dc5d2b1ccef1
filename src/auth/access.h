/* The two ways to access a key. */
#ifndef VIGIL_AUTH_ACCESS_H
#define VIGIL_AUTH_ACCESS_H

enum auth_access { AUTH_READ, AUTH_WRITE, AUTH_ACCESSES };

#endif
