// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/small_file.h"
#include "base/xalloc.h"
#include "push/handover.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* From 6.3 on the kernel may demand this flag; earlier kernels refuse it. */
static int make_file(void)
{
	int fd = memfd_create("pybpfprof-push", MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("pybpfprof-push", MFD_CLOEXEC);
	return fd;
}

static int send_file(int socket, const struct handover *handover, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec data = { (void *)handover, sizeof(*handover) };
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int handover__send(int socket, const struct handover *handover, const void *body)
{
	int fd = make_file(), error;

	if (fd < 0)
		return -errno;
	error = small_file__write_all(fd, body, handover->length);
	if (!error)
		error = send_file(socket, handover, fd);
	close(fd);
	return error;
}

/* The descriptor in MESSAGE, or -1. */
static int file_of(struct msghdr *message)
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	int fd = -1;

	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

int handover__receive(int socket, struct handover *handover, void **body)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
	struct iovec data = { handover, sizeof(*handover) };
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	ssize_t length = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fd, error;

	if (length <= 0)
		return length ? -errno : 0;
	fd = file_of(&message);
	if (fd < 0)
		return -EPROTO;
	*body = xmalloc(handover->length);
	error = small_file__read_all(fd, *body, handover->length, 0);
	close(fd);
	if (!error)
		return 1;
	free(*body);
	return error;
}
