/* What is typed and not shown. */
#ifndef CLI_HIDDEN_H
#define CLI_HIDDEN_H

/* One line of stdin, heap, without its end; asked for when a person types. NULL: there is none. */
char *hidden_line(const char *what);

#endif
