/*
 * Calls that have hurt people before become compile errors. Included by base/base.h, so every
 * file of the project sees it. (The idea and the list are git's.)
 */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#define BANNED(fn) sorry_##fn##_is_banned

#undef strcpy
#define strcpy(x, y) BANNED(strcpy)
#undef strcat
#define strcat(x, y) BANNED(strcat)
#undef strncpy
#define strncpy(x, y, n) BANNED(strncpy)
#undef strncat
#define strncat(x, y, n) BANNED(strncat)
#undef strtok
#define strtok(x, y) BANNED(strtok)
#undef strtok_r
#define strtok_r(x, y, z) BANNED(strtok_r)
#undef sprintf
#define sprintf(...) BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) BANNED(vsprintf)
#undef gmtime
#define gmtime(t) BANNED(gmtime)
#undef localtime
#define localtime(t) BANNED(localtime)
#undef atoi
#define atoi(s) BANNED(atoi)
#undef system
#define system(s) BANNED(system)
#undef popen
#define popen(c, m) BANNED(popen)

#endif
