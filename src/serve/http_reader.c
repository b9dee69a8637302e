/* SPDX-License-Identifier: MIT */
/*
 * Long messages. To read one of a mebibyte takes longer than others should wait, so a thread reads
 * them, one after the other, and nothing else: it is handed the bytes and hands back a message or a
 * failure. All that has an effect is done by the loop, to which it is one more descriptor.
 *
 * What is below the lock belongs to the thread from when there is a job until it is done, and to
 * the loop otherwise. A connection that goes away meanwhile takes nothing with it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "serve/http_parts.h"

#define NICE 10 /* behind the loop, where both want a processor */

struct http_reader {
        struct serve_http *http;
        struct http_connection *connection; /* whose turn it is; NULL: nobody's, or it has gone */
        struct event *event;
        int done; /* eventfd: readable when a job is */
        pthread_t thread;
        bool started, busy; /* from when there is a job until what it gave was taken */
        pthread_mutex_t lock;
        pthread_cond_t wake;
        bool job, ending;
        struct buffer body;
        struct endpoint_message read;
};

static void *run(void *context)
{
        struct http_reader *reader = context;
        uint64_t one = 1;

        (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE); /* of this thread alone */
        pthread_mutex_lock(&reader->lock);
        while (!reader->ending) {
                if (!reader->job) {
                        pthread_cond_wait(&reader->wake, &reader->lock);
                        continue;
                }
                pthread_mutex_unlock(&reader->lock);
                endpoint_read(&reader->body, &reader->read);
                pthread_mutex_lock(&reader->lock);
                reader->job = false;
                (void)!write(reader->done, &one, sizeof(one));
        }
        pthread_mutex_unlock(&reader->lock);
        return NULL;
}

/* The next one, if the thread has nothing to do. */
static void feed(struct http_reader *reader)
{
        struct http_connection *connection = TAILQ_FIRST(&reader->http->queue);

        if (reader->busy || !connection)
                return;
        TAILQ_REMOVE(&reader->http->queue, connection, queued);
        connection->state = HTTP_READING;
        reader->connection = connection;
        reader->busy = true;
        pthread_mutex_lock(&reader->lock);
        reader->body = connection->body;
        connection->body = (struct buffer)BUFFER_INIT;
        reader->job = true;
        pthread_cond_signal(&reader->wake);
        pthread_mutex_unlock(&reader->lock);
}

static void on_done(evutil_socket_t fd, short what, void *context)
{
        struct http_reader *reader = context;
        struct http_connection *connection;
        struct endpoint_message message;
        uint64_t count;

        (void)what;
        if (read(fd, &count, sizeof(count)) != sizeof(count))
                return;
        connection = TAKE_PTR(reader->connection);
        pthread_mutex_lock(&reader->lock);
        message = reader->read;
        reader->read = (struct endpoint_message){ 0 };
        reader->http->buffered -= reader->body.length;
        buffer_free(&reader->body);
        pthread_mutex_unlock(&reader->lock);
        reader->busy = false;
        if (connection) {
                connection->state = HTTP_BUSY;
                endpoint_take_read(connection, &message);
        }
        endpoint_message_clear(&message);
        feed(reader);
}

void reader_queue(struct http_connection *connection)
{
        TAILQ_INSERT_TAIL(&connection->http->queue, connection, queued);
        feed(connection->http->reader);
}

void reader_forget(struct http_connection *connection)
{
        struct http_reader *reader = connection->http->reader;

        if (connection->state == HTTP_QUEUED)
                TAILQ_REMOVE(&connection->http->queue, connection, queued);
        else if (reader && reader->connection == connection)
                reader->connection = NULL;
}

int reader_open(struct serve_http *http)
{
        struct http_reader *reader = calloc(1, sizeof(*reader));
        sigset_t all, before;
        int r;

        if (!reader)
                return -ENOMEM;
        http->reader = reader;
        reader->http = http;
        pthread_mutex_init(&reader->lock, NULL);
        pthread_cond_init(&reader->wake, NULL);
        reader->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        reader->event = reader->done < 0 ? NULL
                                         : event_new(http->base, reader->done, EV_READ | EV_PERSIST,
                                                     on_done, reader);
        if (!reader->event || event_add(reader->event, NULL) < 0)
                return -ENOMEM;
        sigfillset(&all); /* signals are the loop's */
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&reader->thread, NULL, run, reader);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        reader->started = r == 0;
        return -r;
}

struct http_reader *reader_close(struct http_reader *reader)
{
        if (!reader)
                return NULL;
        pthread_mutex_lock(&reader->lock);
        reader->ending = true;
        pthread_cond_signal(&reader->wake);
        pthread_mutex_unlock(&reader->lock);
        if (reader->started)
                pthread_join(reader->thread, NULL);
        if (reader->event)
                event_free(reader->event);
        base_close(reader->done);
        endpoint_message_clear(&reader->read);
        buffer_free(&reader->body);
        pthread_cond_destroy(&reader->wake);
        pthread_mutex_destroy(&reader->lock);
        free(reader);
        return NULL;
}
