// `@azure-rest/ai-personalizer`, as published: node personalizer_rest.cjs ADDRESS KEY. Prints what it was answered.
const { default: createClient, isUnexpected } = require("@azure-rest/ai-personalizer");

const [address, key] = process.argv.slice(2);
const actions = ["news", "sports", "music"].map((id) => ({ id, features: [{ topic: id }] }));

async function main() {
  const client = createClient(address, { key }, { allowInsecureConnection: true }); // no TLS on this machine
  const said = {};
  const call = async (name, promise) => {
    const found = await promise;
    said[name] = { status: Number(found.status), body: found.body ?? null };
    try {
      said[name].unexpected = isUnexpected(found);
    } catch {
      said[name].unexpected = null; // the client knows no other answer of this call
    }
  };
  await call("rank", client.path("/rank").post({ body: { eventId: "rest", actions, contextFeatures: [{ user: 1 }], deferActivation: true } }));
  await call("activate", client.path("/events/{eventId}/activate", "rest").post());
  await call("reward", client.path("/events/{eventId}/reward", "rest").post({ body: { value: 0.5 } }));
  const slots = [{ id: "top", baselineAction: "news" }];
  await call("slots", client.path("/multislot/rank").post({ body: { eventId: "several", actions, slots, contextFeatures: [], deferActivation: true } }));
  await call("slotsActivate", client.path("/multislot/events/{eventId}/activate", "several").post());
  await call("slotsReward", client.path("/multislot/events/{eventId}/reward", "several").post({ body: { reward: [{ slotId: "top", value: 1 }] } }));
  await call("settings", client.path("/configurations/service").get());
  await call("putSettings", client.path("/configurations/service").put({ body: { ...said.settings.body, defaultReward: 0.25 } }));
  await call("policy", client.path("/configurations/policy").get());
  await call("putPolicy", client.path("/configurations/policy").put({ body: said.policy.body }));
  await call("resetPolicy", client.path("/configurations/policy").delete());
  await call("model", client.path("/model").get());
  await call("modelProperties", client.path("/model/properties").get());
  await call("resetModel", client.path("/model").delete());
  await call("logProperties", client.path("/logs/properties").get());
  await call("evaluations", client.path("/evaluations").get());
  await call("evaluate", client.path("/evaluations").post({ body: { name: "a", startTime: new Date(0).toISOString(), endTime: new Date().toISOString(), policies: [] } }));
  await call("evaluation", client.path("/evaluations/{evaluationId}", "1").get());
  await call("forgetEvaluation", client.path("/evaluations/{evaluationId}", "1").delete());
  await call("apply", client.path("/configurations/applyFromEvaluation").post({ body: { evaluationId: "1", policyName: "a" } }));
  await call("interactions", client.path("/logs/interactions").post({ body: [] }));
  await call("observations", client.path("/logs/observations").post({ body: [] }));
  await call("deleteLogs", client.path("/logs").delete());
  await call("noLog", client.path("/logs/properties").get());
  console.log(JSON.stringify(said));
}

main();
