// `@azure/cognitiveservices-personalizer`, as published: node personalizer.cjs ADDRESS KEY. Prints what it was answered.
const { PersonalizerClient } = require("@azure/cognitiveservices-personalizer");
const { ApiKeyCredentials } = require("@azure/ms-rest-js");

const [address, key] = process.argv.slice(2);
const credentials = (value) => new ApiKeyCredentials({ inHeader: { "Ocp-Apim-Subscription-Key": value } });

async function refused(call) {
  try {
    await call();
  } catch (error) {
    return { status: error.statusCode, code: error.body?.error?.code ?? JSON.parse(error.response.bodyAsText).error.code };
  }
  throw new Error("it was not refused");
}

async function main() {
  const client = new PersonalizerClient(credentials(key), address);
  const request = {
    eventId: "javascript-1",
    contextFeatures: [{ timeOfDay: "morning" }],
    actions: ["news", "sports", "music"].map((id) => ({ id, features: [{ topic: id }] })),
    excludedActions: ["music"],
    deferActivation: true,
  };
  const answer = await client.rank(request);
  await client.events.activate(answer.eventId);
  await client.events.reward(answer.eventId, { value: 1 });
  const unknown = await refused(() => client.events.reward("unknown", { value: 1 }));
  const bad = await refused(() => client.rank({ ...request, eventId: "javascript-2", actions: [] }));
  const stranger = new PersonalizerClient(credentials("wrong"), address);
  const locked = await refused(() => stranger.events.activate("javascript-1"));
  const { eventId, rewardActionId, ranking } = answer;
  console.log(JSON.stringify({ answer: { eventId, rewardActionId, ranking }, unknown, bad, locked }));
}

main();
