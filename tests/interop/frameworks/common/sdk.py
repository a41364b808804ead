"""The operations of an official SDK client, written once for both versions of it."""

import asyncio

import answers
import operations


class Client:
    """A version supplies `fetch_card`, `exchange`, `get_task` and `cancel_task`."""

    async def send_message(self, part, **where):
        answer = answers.Answer()
        async for _ in self.exchange(answer, False, part, **where):
            pass
        # An agent may answer a call that waits before it is done.
        while answer.task_id and answer.state in ("submitted", "working"):
            answer = await self.get_task(answer.task_id)
        return answer

    def stream_message(self, answer, part):
        return self.exchange(answer, True, part)

    async def card(self):
        address = await self.fetch_card()
        return operations.Outcome("", detail=address)

    async def send(self):
        return (await self.send_message({"text": "hello"})).ended().outcome(unary=True)

    async def stream(self):
        answer = answers.Answer()
        async for _ in self.stream_message(answer, {"text": "hello"}):
            pass
        return answer.ended().outcome(unary=False)

    async def get(self):
        answer = await self.send_message({"text": "hello"})
        if not answer.task_id:
            raise operations.Failed("the answer was a message, and there is no task to get")
        # An agent may answer before the end, and is asked until it is there.
        task = await self.get_task(answer.task_id)
        while task.state not in answers.ENDED:
            await asyncio.sleep(0.2)
            task = await self.get_task(answer.task_id)
        return task.ended().outcome(unary=True)

    async def multi_turn(self):
        first = await self.send_message({"text": "one"})
        second = await self.send_message({"text": "two"}, context_id=first.context_id)
        return second.ended().outcome(unary=True)

    async def ask_back(self):
        question = await self.send_message({"text": "ask me"})
        if question.state != "input-required":
            raise operations.Failed(f"no question: {question.state} {question.content()}")
        reply = answers.reply_parts(question)
        answer = await self.send_message(reply, context_id=question.context_id, task_id=question.task_id)
        return operations.Outcome(f"{' '.join(question.content())} -> {' '.join(answer.ended().without(question).content())}")

    async def cancel(self):
        """Cancels a task while it runs; a stream is how its id gets known before its end."""
        answer = answers.Answer()
        known = asyncio.Event()

        async def follow():
            try:
                async for _ in self.stream_message(answer, {"text": "slow"}):
                    if answer.task_id:
                        known.set()
            finally:
                known.set()

        following = asyncio.create_task(follow())
        await known.wait()
        if not answer.task_id:
            await following
            raise operations.Failed("the stream named no task")
        cancelled = await self.cancel_task(answer.task_id)
        # A stream that breaks is not what is looked at here.
        await asyncio.wait([following], timeout=5)
        following.cancel()
        return operations.Outcome(cancelled.state)
