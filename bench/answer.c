/* SPDX-License-Identifier: MIT */
/* A tool that answers: it reads its input to the end and writes a result to descriptor 3. */
#include <unistd.h>

int main(void)
{
        static const char answer[] = "42\n";
        char input[4096];
        ssize_t n;

        do
                n = read(STDIN_FILENO, input, sizeof(input));
        while (n > 0);
        return n == 0 && write(3, answer, sizeof(answer) - 1) > 0 ? 0 : 1;
}
